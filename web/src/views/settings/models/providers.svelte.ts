// The model providers, as they are for this user.

import { attempt } from '../../../lib/notes.svelte'
import type { Provider, ProviderTest } from '../../../lib/types'
import { listen, rest } from '../../../state/server'

/** A model that a provider lists. */
export type Model = NonNullable<Provider['models']>[number]

let list = $state.raw<Provider[] | null>(null)
let asking = $state(false)
let testing = $state('')

listen({
  event: (e) => {
    if (list && (e.ev === 'resource.updated' || e.ev === 'resource.deleted') && e.data.kind === 'provider') void providers.load()
  },
})

const names: Record<string, string> = { gemini: 'Gemini', openrouter: 'OpenRouter', openai: 'OpenAI', offline: 'Offline' }
export const providerName = (name: string) => names[name] ?? name

export const providers = {
  get list() {
    return list
  },
  get asking() {
    return asking
  },
  async load() {
    asking = true
    const page = await attempt(() => rest.get('/providers'))
    asking = false
    if (page) list = page.items
  },
  /** The provider that is being tested; there is one test at a time. */
  get testing() {
    return testing
  },
  /** test asks the provider's model, or the one that the user chose of it, one short thing. */
  async test(name: string, model?: string): Promise<ProviderTest | undefined> {
    testing = name
    const body = model ? { model } : {}
    const tested = await attempt(() => rest.post('/providers/{name}/test', { path: { name }, body }))
    testing = ''
    return tested
  },
}
