/**
 * Asks for lines on a terminal, shown while they are typed or not.
 *
 * Surprise: the terminal is in raw mode for all of it, so the keys that edit a line are handled here: Backspace, Ctrl-U
 * (empties it), Ctrl-C and Ctrl-D (give up). Others, such as the arrows, do nothing.
 */
import { StringDecoder } from 'node:string_decoder'

/** A terminal to read from, as `process.stdin` is one. */
export interface TerminalInput extends AsyncIterable<Uint8Array> {
  setRawMode(on: boolean): unknown
}

/** Asks one question. Returns undefined when the person gave up or the terminal is gone. */
export type Ask = (prompt: string, isShown: boolean) => Promise<string | undefined>

const keys = { end: '\u0003', endOfInput: '\u0004', clear: '\u0015', escape: '\u001b' } as const
const backspaces = ['\b', '\u007f']
const lineEnds = ['\r', '\n']

/**
 * Lends the terminal to `talk`, and takes it back, in its usual mode and closed, when that is done.
 * @param write prints, on the same terminal
 */
export async function withTerminal<Result>(
  input: TerminalInput,
  write: (text: string) => void,
  talk: (ask: Ask) => Promise<Result>,
): Promise<Result> {
  const characters = readCharacters(input)
  input.setRawMode(true)
  try {
    return await talk((prompt, isShown) => readLine(characters, write, prompt, isShown))
  } finally {
    input.setRawMode(false)
    await characters.return(undefined)
  }
}

async function readLine(
  characters: AsyncIterator<string>,
  write: (text: string) => void,
  prompt: string,
  isShown: boolean,
): Promise<string | undefined> {
  const line: string[] = []
  write(prompt)
  for (;;) {
    const { value: key, done } = await characters.next()
    if (done === true || key === keys.end || (key === keys.endOfInput && line.length === 0)) {
      write('\r\n')
      return undefined
    }
    if (lineEnds.includes(key)) {
      write('\r\n')
      return line.join('')
    }
    if (key === keys.escape) await skipSequence(characters)
    else if (key === keys.clear) line.length = 0
    else if (backspaces.includes(key)) line.pop()
    else if (key >= ' ') line.push(key)
    if (isShown) write(`\r\u001b[K${prompt}${line.join('')}`)
  }
}

/** What a key such as an arrow sends after Escape: `[` or `O`, maybe parameters, and a last character. */
async function skipSequence(characters: AsyncIterator<string>): Promise<void> {
  const { value } = await characters.next()
  if (value !== '[' && value !== 'O') return
  for (;;) {
    const { value: part, done } = await characters.next()
    if (done === true || /^[@-~]$/.test(part)) return
  }
}

async function* readCharacters(input: AsyncIterable<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new StringDecoder('utf8')
  for await (const chunk of input) yield* decoder.write(Buffer.from(chunk))
}
