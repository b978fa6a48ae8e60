/** What the tests of connections serve: an action that answers, one that reads its body, and one that takes a while. */
export const actions = {
  '/ok': "() => 'ok'",
  '/read': '(ctx) => ctx.readBytes().then((bytes) => String(bytes.length))',
  '/wait': "(ctx) => new Promise((resolve) => { ctx.log('waits'); setTimeout(resolve, 50, 'waited') })",
}
