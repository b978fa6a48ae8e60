import { get, type IncomingMessage } from 'node:http'
import type { TestContext } from 'node:test'
import { startApplication, type Files, type TestApplication } from '../support/application.ts'
import { until } from '../support/until.ts'

/** Starts an application in `dev` that applies saved files. */
export function startDev(
  t: Pick<TestContext, 'after'>,
  files: Files,
  config: Readonly<Record<string, unknown>> = {},
): Promise<TestApplication> {
  return startApplication(t, files, { 'app.env': 'dev', ...config }, { watch: true })
}

/** A page of a view. */
export const page = (text: string): string => `<html><body><p>${text}</p></body></html>`

/** The header fields of a browser that opens a page. */
export const navigation = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', accept: 'text/html' }

/** The stream of an open page. */
export interface PageStream {
  /** Its messages: the problems of a refused reload, or none when the page, or its style, is older than the last change. */
  readonly news: readonly (readonly string[])[]
  /** Resolves after this many messages. */
  told(count: number): Promise<void>
  /** Resolves when the server has ended it. */
  readonly ended: Promise<unknown>
}

/** A message, interpreted as by the script in the page. */
interface Told {
  readonly changedMsAgo: number
  readonly styledMsAgo: number
  readonly problems: string[]
}

/** Opens the stream of a page. @param ageMs how long the page has been open when it reads a message */
export async function openStream(t: Pick<TestContext, 'after'>, url: string, ageMs = 0): Promise<PageStream> {
  let text = ''
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = get(`${url}/svc-dev-events`, { agent: false }, resolve).on('error', reject)
    t.after(() => sent.destroy())
  })
  if (response.statusCode !== 200) throw new Error(`The stream is ${response.statusCode}`)
  response.setEncoding('utf8').on('data', (more: string) => (text += more))
  const ended = new Promise((resolve) => response.on('close', resolve).on('error', resolve))
  const told = () => [...text.matchAll(/^data: (.*)\n\n/gm)].map(([, data = '']) => JSON.parse(data) as Told)
  const news = () =>
    told().flatMap(({ changedMsAgo, styledMsAgo, problems }) =>
      Math.min(changedMsAgo, styledMsAgo) <= ageMs ? [[]] : problems.length > 0 ? [problems] : [])
  await until(() => told().length > 0)
  return {
    get news() {
      return news()
    },
    told: (count) => until(() => news().length >= count),
    ended,
  }
}
