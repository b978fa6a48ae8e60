/**
 * Fuzzes a running server over raw sockets. Each connection has an address of its own in 127.0.0.0/8, so that its access
 * lines are known by it. What must hold:
 *
 * - every sound request has one answer with a valid status that is no 500, in order, until one says that it is the last;
 * - framing and header fields of every answer are right, and the connection ends within a bound;
 * - the access lines of an address are its answers, in order, and no line is forged;
 * - what is guarded is not given without the cookie; at the end nothing is held, counted wrong or lost.
 */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { shrink } from './shrink.ts'
import { seededFor, shown, type Input } from './target.ts'
import { readAnswers, type WireAnswer } from './wire-answers.ts'
import { guardedPaths, lastRequest, makeConversation } from './wire-requests.ts'
import { WireServer } from './wire-server.ts'

/** What was done. */
export interface RequestResult {
  readonly requests: number
  readonly connections: number
  readonly answers: number
  readonly seconds: number
}

/** What a connection sent and got. */
interface Talk {
  readonly input: Input
  readonly address: string
  readonly received: string
  /** Whether the client had to end it: the server waited for more. */
  readonly endedByClient: boolean
  readonly ms: number
}

const atOnce = 48
/** Connections between two looks at the logs. */
const round = 5000
/** How long nothing may come before the client of a broken or held request says that it is done, and how long the server then has, in milliseconds. */
const quietMs = 150
const closeMs = 15_000

/**
 * Sends at least so many requests.
 * @throws Error with the seed and the smallest conversation that was found to fail
 */
export async function fuzzRequests(seed: number, count: number, from = 0): Promise<RequestResult> {
  const cleanings: (() => unknown)[] = []
  const t = { after: (clean: () => unknown) => void cleanings.push(clean) }
  const startedAt = performance.now()
  let requests = 0
  let connections = 0
  let answers = 0
  try {
    const server = await WireServer.start(t)
    for (let index = from; requests < count; ) {
      const inputs: Input[] = []
      for (; inputs.length < round && requests < count; index += 1) {
        const input = makeConversation(seededFor(seed, index), server.secrets)
        inputs.push(input)
        requests += input.length
      }
      const talks = await talkAll(server, inputs, connections)
      connections += inputs.length
      try {
        answers += await judgeAll(server, talks)
      } catch (error) {
        throw await explain(t, error, `seed ${seed}, connections from ${index - inputs.length} on`, inputs)
      }
    }
    await server.checkCount()
    await server.stop()
  } finally {
    for (const clean of cleanings.reverse()) await clean()
  }
  return { requests, connections, answers, seconds: (performance.now() - startedAt) / 1000 }
}

async function talkAll(server: WireServer, inputs: readonly Input[], first: number): Promise<Talk[]> {
  const talks: Talk[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < inputs.length && server.isAlive) {
      const at = next
      next += 1
      talks[at] = await talk(server.port, inputs[at] as Input, addressOf(first + at))
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return talks
}

function addressOf(index: number): string {
  const number = 0x1_0000 + (index % 0xfe_0000)
  return `127.${number >> 16}.${(number >> 8) & 255}.${number & 255}`
}

function talk(port: number, input: Input, address: string): Promise<Talk> {
  const startedAt = performance.now()
  // Where every request is sound, the server ends the connection, however long a busy machine takes.
  const waitMs = input.every((text) => text.startsWith('s')) ? closeMs : quietMs
  const socket = connect({ port, host: '127.0.0.1', localAddress: address })
  const chunks: Buffer[] = []
  let endedByClient = false
  const finish = (): void => {
    endedByClient = true
    socket.end()
    quiet = setTimeout(() => socket.destroy(), closeMs)
  }
  let quiet = setTimeout(finish, waitMs)
  const renew = (): void => {
    clearTimeout(quiet)
    quiet = setTimeout(endedByClient ? () => socket.destroy() : finish, endedByClient ? closeMs : waitMs)
  }
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    renew()
  })
  socket.on('connect', renew)
  socket.on('error', () => {}) // A cut connection shows in what came.
  socket.write(bytesOf(input))
  return new Promise((resolve) => {
    socket.on('close', () => {
      clearTimeout(quiet)
      resolve({ input, address, received: Buffer.concat(chunks).toString('latin1'), endedByClient, ms: performance.now() - startedAt })
    })
  })
}

function bytesOf(input: Input): Buffer {
  const isHeld = input.at(-1)?.startsWith('h') === true
  return Buffer.from(input.map((text) => text.slice(1)).join('') + (isHeld ? '' : lastRequest), 'latin1')
}

/** Holds every conversation against the answers and the access lines. Returns the number of answers. */
async function judgeAll(server: WireServer, talks: readonly Talk[]): Promise<number> {
  assert.ok(server.isAlive, `The process has ended: ${server.lastWords}`)
  await server.settle()
  const lines = server.accessLines()
  let answers = 0
  for (const one of talks) answers += judge(one, lines.get(one.address) ?? [])
  for (const address of lines.keys()) assert.ok(address === '127.0.0.1' || talks.some((one) => one.address === address), address)
  return answers
}

function judge({ input, received, endedByClient, ms }: Talk, logged: readonly number[]): number {
  try {
    assert.ok(ms < closeMs, `it took ${Math.round(ms)} ms`)
    const { answers, isCut } = readAnswers(received, (index) => input[index]?.startsWith('sHEAD ') === true)
    assert.ok(!isCut || endedByClient, 'an answer is not whole')
    const sound = input.filter((text) => text.startsWith('s'))
    for (const [at, text] of sound.entries()) {
      const answer = answers[at]
      if (answer === undefined && endedByClient) break
      assert.ok(answer !== undefined, `request ${at} has no answer`)
      checkAnswer(text.slice(1), answer)
      if (answer.isLast) break
    }
    for (const { status } of answers) assert.notEqual(status, 500)
    compareWithLog(answers.map(({ status }) => status), logged.filter((status) => status !== 499), endedByClient || answers.at(-1)?.isLast === true)
    return answers.length
  } catch (error) {
    if (error instanceof Error) error.message += `\nconversation: ${shown(input)}\nreceived: ${JSON.stringify(received.slice(0, 2000))}\nlogged: ${logged.join()}`
    throw error
  }
}

/** What is guarded is for those with the cookie: everybody else is sent away, or asked wrongly. */
function checkAnswer(text: string, { status, type }: WireAnswer): void {
  const [method = '', target = ''] = text.split(' ', 2)
  const [path = ''] = target.split('?', 1)
  const isOpen = !guardedPaths.includes(path) || method === 'OPTIONS' || text.includes('svc_admin=1700000000:')
  assert.ok(isOpen || status >= 300, `${method} ${target} was answered with ${status} ${type}`)
}

/**
 * Each answer has its line. A line may stand alone where the client did not wait for the answer, and where the request was at
 * work already when the answer to one before it said that it is the last.
 */
function compareWithLog(answered: readonly number[], logged: readonly number[], mayHaveMore: boolean): void {
  const fits = answered.join() === (mayHaveMore ? logged.slice(0, answered.length) : logged).join()
  assert.ok(fits, `answered ${answered.join()}, logged ${logged.join()}`)
}

/** Finds one conversation that fails by itself, and makes it smaller. */
async function explain(t: { after(clean: () => unknown): void }, error: unknown, where: string, inputs: readonly Input[]): Promise<Error> {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  console.error(`${where}: a conversation fails and is made smaller\n${text}`)
  let server = await WireServer.start(t)
  let index = 0
  const fails = async (input: Input): Promise<boolean> => {
    if (!server.isAlive) server = await WireServer.start(t)
    index += 1
    const talks = await talkAll(server, [input], index)
    return judgeAll(server, talks).then(() => false, () => true)
  }
  const named = inputs.find((input) => text.includes(shown(input)))
  for (const input of named === undefined ? inputs : [named]) {
    if (!(await fails(input))) continue
    // Only what is broken may lose characters: of a sound request something else would be expected then.
    const smallest = await shrink(input, (smaller) => smaller.every((one) => one.startsWith('b') || input.includes(one)) && fails(smaller), 60)
    return new Error(`${where}\nsmallest conversation: ${shown(smallest)}\n${text}`)
  }
  return new Error(`${where}; no connection fails alone\n${text}`)
}
