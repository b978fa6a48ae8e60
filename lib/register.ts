/**
 * For programs outside the server, such as the tests of an application: with `node --import <server>/lib/register.ts`,
 * or `dist/register.js`, `svc` is this server in them, as it is in the modules that a server loads.
 */
import { provideServer } from './modules/module-hooks.ts'

await provideServer()
