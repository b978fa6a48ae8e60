/** GET /board/poll?since=ID : what changed after that event, as soon as something has; empty after 25 seconds. */
export default ({ channel, longPoll }) => longPoll(channel('notices'), { timeout_s: 25 })
