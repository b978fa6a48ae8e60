/** GET /board/events : the same changes as server-sent events. */
export default ({ channel, sse }) => sse(channel('notices'))
