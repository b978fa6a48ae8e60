import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { after, type TestContext } from 'node:test'
import type { Readable, Writable } from 'node:stream'
import { temporaryFolder } from './temporary-folder.ts'
import { until } from './until.ts'

type Json = Record<string, unknown>

/** A page gives the focus to its field with `autofocus` when it first draws itself, which may be after it has loaded. */
const hasItsFocus = `{
  const field = document.querySelector('[autofocus]')
  !field?.checkVisibility() || document.activeElement !== document.body
}`

/** The properties of the window. */
export interface Look {
  readonly width: number
  readonly height: number
  readonly dark: boolean
}

const missing = 'Cannot run the browser tests: chromium is not installed: run `apt-get install chromium`'
const flags = [
  '--headless=new',
  '--no-sandbox',
  // A page of another site stays in one process: of one that takes its place, the load event may be lost.
  '--disable-site-isolation-trials',
  '--disable-features=ProactivelySwapBrowsingInstance,IsolateOrigins,site-per-process',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-extensions',
  '--disable-sync',
  '--no-first-run',
  '--no-startup-window',
  '--remote-debugging-pipe',
]

/** The browser of this file's tests, from the first one that opens a page. */
let browser: Promise<Browser> | undefined
after(() => browser?.then(({ end }) => end(), () => {})) // If it could not start, the test has reported it.

/**
 * Opens a page in a window of its own, with cookies of its own, which are gone when the test ends. Chromium is started
 * once, with an empty profile, and ends with the tests of the file. To be called before a server is started, so that the
 * page, and with it its connections, is gone when the server stops.
 */
export async function openPage(t: Pick<TestContext, 'after'>): Promise<Page> {
  const { connection } = await (browser ??= startBrowser())
  const { browserContextId } = await connection.send('Target.createBrowserContext')
  const tabs: Page[] = []
  t.after(async () => {
    // A window that is closed while one of its pages navigates may stay open, and Chromium then never answers.
    await Promise.all(tabs.map((tab) => tab.leave()))
    await connection.send('Target.disposeBrowserContext', { browserContextId })
  }, { timeout: 90_000 })
  return openTab()

  async function openTab(): Promise<Page> {
    const { targetId } = await connection.send('Target.createTarget', { url: 'about:blank', browserContextId })
    const { sessionId } = await connection.send('Target.attachToTarget', { targetId, flatten: true })
    const page = new Page(connection, sessionId as string, openTab)
    await page.enable()
    tabs.push(page)
    return page
  }
}

interface Browser {
  readonly connection: Connection
  end(): Promise<void>
}

async function startBrowser(): Promise<Browser> {
  const profile = temporaryFolder()
  // It listens on descriptor 3 and answers on descriptor 4. Its own group, so that its helpers end with it.
  const child = spawn(process.env['CHROMIUM'] ?? 'chromium', [...flags, `--user-data-dir=${profile}`], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
    detached: true,
    env: { ...process.env, TMPDIR: profile }, // Its leftovers are removed with the profile.
  })
  await once(child, 'spawn').catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? new Error(missing, { cause: error }) : error
  })
  const connection = new Connection(child)
  const end = async (): Promise<void> => {
    if (child.exitCode === null) process.kill(-(child.pid as number), 'SIGKILL') // It has been spawned.
    await connection.ended
    rmSync(profile, { recursive: true, force: true, maxRetries: 20 })
  }
  return { connection, end }
}

/** A page, and the actions of a user. A selector means the first matching element. */
export class Page {
  /** Errors of the console: scripts, resources that did not load, Content-Security-Policy violations. */
  readonly errors: string[] = []
  readonly #browser: Connection
  readonly #session: string
  #loads = 0
  #url = ''
  /** The address of the page, unless it is loading or being replaced. */
  #restsAt: string | undefined

  /** Opens a tab of the same browser: it shares cookies and storage, and has a process of its own. */
  readonly another: () => Promise<Page>

  constructor(browser: Connection, session: string, another: () => Promise<Page>) {
    this.#browser = browser
    this.#session = session
    this.another = another
    browser.listen(session, (method, parameters) => this.#note(method, parameters))
  }

  /** Subscribes to the events. Called once, by {@link openPage}. */
  async enable(): Promise<void> {
    for (const domain of ['Page', 'Runtime', 'Log', 'DOM']) await this.#send(`${domain}.enable`)
  }

  /** Opens an address. Resolves when the page has loaded. */
  open(url: string): Promise<void> {
    return this.#loading(async () => void (await this.#send('Page.navigate', { url })))
  }

  /** Leaves the page for an empty one, again if the page goes elsewhere meanwhile. Resolves when the tab is at rest. */
  async leave(): Promise<void> {
    do {
      await this.#send('Page.navigate', { url: 'about:blank' }) // It is answered before the page is replaced.
      await until(() => this.#restsAt !== undefined)
    } while (this.#restsAt !== 'about:blank')
  }

  /** Goes back in the history of the tab. Resolves when that page is there, loaded anew or as the browser has kept it. */
  back(steps: number): Promise<void> {
    return this.#loading(async () => {
      const { currentIndex, entries } = (await this.#send('Page.getNavigationHistory')) as { currentIndex: number; entries: { id: number }[] }
      await this.#send('Page.navigateToHistoryEntry', { entryId: entries[currentIndex - steps]?.id })
    })
  }

  /** The value of an expression in the page; what it resolves with when it is a promise. */
  async evaluate(expression: string): Promise<unknown> {
    const options = { expression, returnByValue: true, awaitPromise: true }
    const { result, exceptionDetails: thrown } = (await this.#send('Runtime.evaluate', options)) as {
      result: { value?: unknown }
      exceptionDetails?: { text: string; exception?: { description?: string } }
    }
    if (thrown !== undefined) throw new Error(thrown.exception?.description ?? thrown.text)
    return result.value
  }

  /** The visible text of an element. */
  async text(selector: string): Promise<string> {
    return String(await this.evaluate(`${find(selector)}.innerText`))
  }

  /** Clicks with the mouse in the middle of an element. */
  async click(selector: string): Promise<void> {
    const box = (await this.evaluate(`{
      const element = ${find(selector)}
      element.scrollIntoView({ block: 'center', behavior: 'instant' })
      const { left, top, width, height } = element.getBoundingClientRect()
      const box = { x: left + width / 2, y: top + height / 2 }
      box
    }`)) as { x: number; y: number }
    for (const type of ['mousePressed', 'mouseReleased']) {
      await this.#send('Input.dispatchMouseEvent', { type, ...box, button: 'left', clickCount: 1 })
    }
  }

  /** Presses a key on the focused element. */
  async press(key: 'Enter' | 'Escape' | 'Tab'): Promise<void> {
    const text = key === 'Enter' ? { text: '\r' } : {}
    const windowsVirtualKeyCode = { Enter: 13, Escape: 27, Tab: 9 }[key]
    for (const type of ['keyDown', 'keyUp']) {
      await this.#send('Input.dispatchKeyEvent', { type, key, code: key, windowsVirtualKeyCode, ...(type === 'keyDown' && text) })
    }
  }

  /** Presses Enter on an element that opens another page. Resolves when that has loaded. */
  enter(): Promise<void> {
    return this.#loading(() => this.press('Enter'))
  }

  /** Presses Tab until an element that matches has the focus. Throws after 200 times. */
  async tabTo(selector: string): Promise<void> {
    for (let time = 0; time < 200; time += 1) {
      await this.press('Tab')
      if (await this.evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`)) return
    }
    throw new Error(`Tab does not lead to ${selector}`)
  }

  /** Opens every fold of the page, so that its text and controls are visible. */
  async openDetails(): Promise<void> {
    await this.evaluate('for (const each of document.querySelectorAll("details")) each.open = true')
  }

  /** Types into the focused element. */
  async insert(text: string): Promise<void> {
    await this.#send('Input.insertText', { text })
  }

  /** Clicks an element that opens another page. Resolves when that has loaded. */
  follow(selector: string): Promise<void> {
    return this.#loading(() => this.click(selector))
  }

  /** Types into a field. */
  async type(selector: string, text: string): Promise<void> {
    await this.click(selector)
    await this.insert(text)
  }

  /** Chooses files, by their absolute paths, in a file field. */
  async choose(selector: string, files: readonly string[]): Promise<void> {
    const { root } = (await this.#send('DOM.getDocument')) as { root: { nodeId: number } }
    const { nodeId } = await this.#send('DOM.querySelector', { nodeId: root.nodeId, selector })
    await this.#send('DOM.setFileInputFiles', { nodeId, files })
  }

  /** Sets the size of the window and the colour scheme that the reader prefers. */
  async look({ width, height, dark }: Look): Promise<void> {
    await this.#send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 600 })
    const features = [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }]
    await this.#send('Emulation.setEmulatedMedia', { features })
  }

  /** Freezes the page, as a browser does with a long hidden tab, or resumes it. */
  async freeze(isFrozen: boolean): Promise<void> {
    await this.#send('Page.setWebLifecycleState', { state: isFrozen ? 'frozen' : 'active' })
  }

  /** Kills the process of the page. */
  kill(): void {
    this.#send('Page.crash').catch(() => {}) // It is never answered.
  }

  /** Cuts the page off from the network, as a cable that is pulled, or connects it again. */
  async network(isThere: boolean): Promise<void> {
    await this.#send('Network.enable')
    await this.#send('Network.emulateNetworkConditions', { offline: !isThere, latency: 0, downloadThroughput: -1, uploadThroughput: -1 })
  }

  /** Writes a screenshot to a PNG file. */
  async screenshot(file: string): Promise<void> {
    const { data } = await this.#send('Page.captureScreenshot', { format: 'png' })
    writeFileSync(file, String(data), 'base64')
  }

  async #loading(action: () => Promise<void>): Promise<void> {
    const before = this.#loads
    await action()
    await until(() => this.#loads > before)
    await until(async () => (await this.evaluate(hasItsFocus)) === true)
  }

  #send(method: string, parameters: Json = {}): Promise<Json> {
    return this.#browser.send(method, parameters, this.#session)
  }

  #note(method: string, parameters: Json): void {
    // A page that the browser has kept, as behind the back button, comes back without loading.
    const isBack = method === 'Page.frameNavigated' && parameters['type'] === 'BackForwardCacheRestore'
    if (method === 'Page.loadEventFired' || isBack) this.#loads += 1
    const frame = parameters['frame'] as { url: string; parentId?: string } | undefined
    if (method === 'Page.frameNavigated' && frame !== undefined && frame.parentId === undefined) this.#url = frame.url
    if (method === 'Page.frameStartedLoading') this.#restsAt = undefined
    if (method === 'Page.frameStoppedLoading') this.#restsAt = this.#url
    if (method === 'Runtime.exceptionThrown') this.errors.push(JSON.stringify(parameters['exceptionDetails']))
    if (method === 'Runtime.consoleAPICalled' && parameters['type'] === 'error') this.errors.push(JSON.stringify(parameters['args']))
    const entry = parameters['entry'] as { level: string; text: string; url?: string } | undefined // of Log.entryAdded
    if (method === 'Log.entryAdded' && entry?.level === 'error') this.errors.push(`${entry.text} ${entry.url ?? ''}`)
  }
}

/** The DevTools protocol over a pipe: JSON messages, each ended by a zero byte. */
class Connection {
  readonly ended: Promise<unknown>
  readonly #input: Writable
  readonly #waiting = new Map<number, { resolve: (result: Json) => void; reject: (error: Error) => void }>()
  readonly #listeners = new Map<string, (method: string, parameters: Json) => void>()
  #lastId = 0
  #open = true
  #said = ''

  constructor(child: ChildProcess) {
    this.#input = child.stdio[3] as Writable
    const output = child.stdio[4] as Readable
    for (const stream of [this.#input, output]) stream.on('error', () => {}) // Its end is told by `ended`.
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#said += text))
    let rest = ''
    output.setEncoding('utf8').on('data', (text: string) => {
      const messages = (rest + text).split('\0')
      rest = messages.pop() ?? ''
      for (const message of messages) this.#receive(JSON.parse(message))
    })
    this.ended = once(child, 'close').then(() => this.#close())
  }

  send(method: string, parameters: Json = {}, sessionId?: string): Promise<Json> {
    if (!this.#open) return Promise.reject(new Error(`Cannot send ${method}: the browser has ended:\n${this.#said}`))
    const id = (this.#lastId += 1)
    this.#input.write(`${JSON.stringify({ id, method, params: parameters, sessionId })}\0`)
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }))
  }

  listen(sessionId: string, listener: (method: string, parameters: Json) => void): void {
    this.#listeners.set(sessionId, listener)
  }

  #close(): void {
    this.#open = false
    for (const { reject } of this.#waiting.values()) reject(new Error(`The browser has ended:\n${this.#said}`))
    this.#waiting.clear()
  }

  #receive(message: { id?: number; result?: Json; error?: { message: string }; method?: string; params?: Json; sessionId?: string }): void {
    const { id, result = {}, error, method = '', params = {}, sessionId = '' } = message
    if (id === undefined) return this.#listeners.get(sessionId)?.(method, params)
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error === undefined) waiting?.resolve(result)
    else waiting?.reject(new Error(error.message))
  }
}

/** A JavaScript expression for an element that throws if there is none. */
function find(selector: string): string {
  const text = JSON.stringify(selector)
  return `(document.querySelector(${text}) ?? (() => { throw new Error('There is no ' + ${text}) })())`
}
