/** The actions for the connection tests: one replies at once, one reads its body, and one takes a while. */
export const actions = {
  '/ok': "() => 'ok'",
  '/read': '(ctx) => ctx.readBytes().then((bytes) => String(bytes.length))',
  '/wait': "(ctx) => new Promise((resolve) => { ctx.log('waits'); setTimeout(resolve, 50, 'waited') })",
}
