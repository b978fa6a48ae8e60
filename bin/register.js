// For `node --import`: lets `svc` mean this server in programs that it does not load, such as tests. It loads
// lib/register.ts where Node runs TypeScript as it is, else dist/register.js.
const installed = import.meta.url.includes('/node_modules/')
await (process.features.typescript && !installed ? import('../lib/register.ts') : import('../dist/register.js'))
