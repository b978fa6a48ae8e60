/**
 * For programs outside the server, such as the tests of an application: with `node --import <server>/bin/register.js`,
 * which loads this file or `dist/register.js`, `svc` resolves to this server, as in the modules that a server loads.
 */
import { provideServer } from './modules/module-hooks.ts'

await provideServer()
