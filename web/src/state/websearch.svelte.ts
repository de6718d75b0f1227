// Web search: the providers of the server, and what was searched for replies.

import { SvelteMap } from 'svelte/reactivity'
import { language, words } from '../lib/language.svelte'
import { attempt } from '../lib/notes.svelte'
import type { Event, Message, SearchSetup } from '../lib/types'
import { listen, rest } from './server'

const providerWords = words({ mcp: 'an MCP server' }, { mcp: 'MCP 服务器' })
const names: Record<string, string> = { brave: 'Brave', duckduckgo: 'DuckDuckGo', searxng: 'SearXNG', jina: 'Jina' }

/** providerName is the name of a search provider within a sentence. */
export const providerName = (name: string) => (name === 'mcp' ? providerWords.mcp : (names[name] ?? name))

/** One search for a reply. */
export type ReplySearch = Extract<Event, { ev: 'gen.context' }>['data']['search'][number]

let setup = $state.raw<SearchSetup | null>(null)

/** The searches for replies, by generation. Only events tell them, so a reload forgets them. */
const known = new SvelteMap<string, { searches: ReplySearch[]; failed: boolean }>()

listen({
  snapshot: () => void (setup && websearch.read()),
  event: (e) => {
    if (e.ev !== 'gen.context') return
    const failed = e.data.warnings.includes('search_unavailable')
    if (failed || e.data.search.length > 0) known.set(e.generationId, { searches: e.data.search, failed })
  },
})

export const websearch = {
  /** How the server searches; null before it is known. */
  get setup() {
    return setup
  },
  load() {
    if (!setup) void this.read()
  },
  async read() {
    setup = (await attempt(() => rest.get('/websearch'))) ?? setup
  },
  /** The providers by name, in the order in which they are asked: "Brave or Jina". */
  get providers(): string {
    return new Intl.ListFormat(language.current, { type: 'disjunction' }).format((setup?.providers ?? []).map(providerName))
  },
  /** of returns what was searched for the shown text of a message, as far as it is known. */
  of: (m: Message) => known.get(m.swipes[m.swipeIndex]?.generationId ?? m.generationId ?? ''),
}
