// One that imports and exports nothing may add as well: it does not take the place of what is there.
declare module 'svc' {
  interface SessionValues {
    ofScript: 'yes'
  }
}
