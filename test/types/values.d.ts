// A file that adds to the values of sessions and WebSockets, and exports a type.
export interface Note {
  title: string
}

declare module 'svc' {
  interface SessionValues {
    cart: Note[]
    clicks: number
  }
  interface SocketState {
    user: string
  }
}
