// A file that adds to the session's values, and exports a type.
export interface Note {
  title: string
}

declare module 'svc' {
  interface SessionValues {
    cart: Note[]
    clicks: number
  }
}
