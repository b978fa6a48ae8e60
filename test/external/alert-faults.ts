/** Judges the alert rules of docs/deploy by scrapes of a real server: each scrape stands for a minute. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deployFolder } from '../docs/deploy-metrics.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** What Prometheus would have stored. */
export class Scrapes {
  readonly #minutes: ReadonlyMap<string, string>[] = []

  /** The number of minutes so far. */
  get minutes(): number {
    return this.#minutes.length
  }

  /** Scrapes a server for some minutes; `each` comes before each scrape. A server that does not answer is down. */
  async take(url: string, minutes: number, each: () => unknown = () => {}): Promise<void> {
    const read = (): Promise<string | undefined> =>
      request(`${url}/svc-metrics`).then((answer) => answer.text, () => undefined)
    for (let minute = 0; minute < minutes; minute += 1) {
      await each()
      await this.takeFrom(read, 1)
    }
  }

  /** Takes the text of some minutes from a function. */
  async takeFrom(read: () => Promise<string | undefined>, minutes: number): Promise<void> {
    for (let minute = 0; minute < minutes; minute += 1) this.#add(await read())
  }

  /** Repeats the last scrape for some minutes: nothing changes. */
  stay(minutes: number): void {
    for (let minute = 0; minute < minutes; minute += 1) this.#minutes.push(this.#minutes.at(-1) ?? new Map())
  }

  /** Asks promtool which alerts fire at a minute. */
  assertFiring(alert: string, at: Readonly<Record<number, boolean>>): void {
    const names = new Set(this.#minutes.flatMap((minute) => [...minute.keys()]))
    const input_series = [...names].map((series) => {
      return { series, values: this.#minutes.map((minute) => minute.get(series) ?? '_').join(' ') }
    })
    const promql_expr_test = Object.entries(at).map(([minute, fires]) => {
      const firing = { labels: `{alertname="${alert}"}`, value: 1 }
      const expr = `count by (alertname) (ALERTS{alertstate="firing", alertname="${alert}"})`
      return { expr, eval_time: `${minute}m`, exp_samples: fires ? [firing] : [] }
    })
    const tests = [{ interval: '1m', input_series, promql_expr_test }]
    const file = join(temporaryFolder(), 'test.yml')
    writeFileSync(file, JSON.stringify({ rule_files: [join(deployFolder, 'svc.rules.yml')], evaluation_interval: '1m', tests }))
    const { status, error, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' })
    if (error !== undefined) {
      assert.fail(`Cannot run promtool: ${error.message}. Install it: apt-get install --no-install-recommends prometheus`)
    }
    assert.equal(status, 0, `${alert}: ${stdout}${stderr}`)
  }

  #add(text: string | undefined): void {
    const own = 'job="svc",instance="a"'
    const minute = new Map([[`up{${own}}`, text === undefined ? '0' : '1']])
    for (const [, name = '', labels = '', value = ''] of (text ?? '').matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)) {
      // The clock of promtool begins at 0.
      const shown = name === 'svc_tls_certificate_not_after_seconds' ? Number(value) - Date.now() / 1000 : value
      minute.set(`${name}{${own}${labels === '' ? '' : `,${labels}`}}`, String(shown))
    }
    this.#minutes.push(minute)
  }
}
