import { connect } from 'node:net'

/** Sends a WebSocket handshake for `/`. Returns everything that the server answers until it closes the connection. */
export function openHandshake(port: number): Promise<string> {
  const fields = 'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\n${fields}\r\n\r\n`))
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      answer += text
      socket.end()
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}
