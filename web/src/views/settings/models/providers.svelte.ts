// The model providers, as they are for this user.

import { plain } from '../../../lib/format'
import { attempt } from '../../../lib/notes.svelte'
import type { Provider, ProviderTest } from '../../../lib/types'
import { listen, rest } from '../../../state/server'
import { presetOf } from './presets'
import { serverWords } from './serverWords'

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

const names: Record<string, string> = { gemini: 'Gemini', openrouter: 'OpenRouter', openai: 'OpenAI' }
export const providerName = (name: string) => (name === 'offline' ? serverWords.offline : (names[name] ?? presetOf(name)?.label ?? name))

/** modelName is the name of a model for people. */
export const modelName = (m: Model) => (m.id === 'offline-demo' ? serverWords.offlineDemo : plain(m.name || m.id))

/** Where a provider gives keys, and the setting of the server that has its address. */
export const origins: Record<string, { keys: string; setting: string }> = {
  gemini: { keys: 'https://aistudio.google.com/apikey', setting: 'NODEST_GEMINI_BASE_URL' },
  openrouter: { keys: 'https://openrouter.ai/settings/keys', setting: 'NODEST_OPENROUTER_BASE_URL' },
  openai: { keys: 'https://platform.openai.com/api-keys', setting: 'OPENAI_BASE_URL' },
}

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
