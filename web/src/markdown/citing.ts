// Marks like [^1] in a text lead to its sources, if whoever shows the text has some.

import { getContext, setContext } from 'svelte'

export interface Sources {
  has(marker: number): boolean
  open(marker: number): void
  /** The words that follow an unsupported sentence, in place of the sign [?]; empty = the sign. */
  doubt?(): string
}

const key = Symbol('sources')

export const citing = {
  set: (s: Sources) => setContext(key, s),
  get: () => getContext<Sources | undefined>(key),
}
