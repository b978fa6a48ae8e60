/**
 * What the modules of an application register by name, each for as long as it runs: metrics and readiness checks.
 *
 * During a reload the old and the new version of a module run side by side. Both may have a name: the old one is used
 * until its module ends, so that a refused reload changes nothing.
 */

/** The life of one module: `leaving` while a reload is about to replace it. */
export interface Scope {
  state: 'in use' | 'leaving' | 'ended'
}

/** A registered item. */
interface Registration<Item> {
  readonly name: string
  readonly scope: Scope
  readonly item: Item
}

/** The registrations of one kind. */
export class Registrations<Item> {
  readonly #what: string
  #all: readonly Registration<Item>[] = []

  /** @param what names an item in messages, such as `a metric` */
  constructor(what: string) {
    this.#what = what
  }

  /**
   * Registers an item until its module ends. No-op for a module that has ended.
   * @throws Error when the name is taken by a module that stays
   */
  add(scope: Scope, name: string, item: Item): void {
    this.#all = this.#all.filter((each) => each.scope.state !== 'ended')
    if (scope.state === 'ended') return
    if (this.#all.some((each) => each.name === name && each.scope.state === 'in use')) {
      throw new Error(`Cannot register ${this.#what} ${JSON.stringify(name)}: the name is taken; choose another one`)
    }
    this.#all = [...this.#all, { name, scope, item }]
  }

  /** Returns the item in use. */
  get(name: string): Item | undefined {
    return this.list().find((each) => each.name === name)?.item
  }

  /** Returns the item in use of each name, in the order of registration. */
  list(): readonly Omit<Registration<Item>, 'scope'>[] {
    const byName = new Map<string, Registration<Item>>()
    for (const each of this.#all) {
      if (each.scope.state !== 'ended' && !byName.has(each.name)) byName.set(each.name, each)
    }
    return [...byName.values()]
  }
}
