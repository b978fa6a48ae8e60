/** An application with waiting clients: a long poll, a stream, a WebSocket, a publisher, and the client's identity. */
export const waitingApplication = {
  'routes/home.json': [
    { name: 'home', url: '/', action: 'home.mjs' },
    { name: 'who', url: '/who', action: 'home.mjs@who' },
    { name: 'say', url: '/say', action: 'home.mjs@say' },
    { name: 'poll', url: '/poll', action: 'home.mjs@poll' },
    { name: 'events', url: '/events', action: 'home.mjs@events' },
    { name: 'socket', url: '/socket', action: 'home.mjs' },
  ],
  'home.mjs': `export default () => 'home'
    export const who = ({ ip, secure, host, id }) => ({ ip, secure, host, id: id.length })
    export const say = async ({ channel }) => String(await channel('c').publish('news'))
    export const poll = ({ channel, longPoll }) => longPoll(channel('c'))
    export const events = ({ channel, sse }) => sse(channel('c'))
    export const websocket = { message: (ws, data) => ws.send(data.toUpperCase()) }`,
}
