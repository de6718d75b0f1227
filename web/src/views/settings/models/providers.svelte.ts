// The model providers, as they are for this user.

import type { Failure } from '@nodest/client'
import { attempt } from '../../../lib/notes.svelte'
import type { Provider } from '../../../lib/types'
import { listen, rest } from '../../../state/server'

type StoredError = Pick<Failure, 'code'> & { detail: string }

/** A model that a provider lists; prices are for a million tokens, in US dollars. */
export type Model = NonNullable<Provider['models']>[number] & { promptPrice?: number; completionPrice?: number }

/** A provider, and why it could not list its models. */
export type KnownProvider = Omit<Provider, 'models'> & { models: Model[] | null; error?: StoredError }

/** How a provider answered one small request. */
export interface Tested {
  ok: boolean
  model: string
  ms: number
  reply?: string
  error?: StoredError
}

let list = $state.raw<KnownProvider[] | null>(null)
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
  async test(name: string, model?: string): Promise<Tested | undefined> {
    testing = name
    const body = model ? { model } : {}
    const tested = await attempt(() => rest.post('/providers/{name}/test' as never, { path: { name }, body } as never) as Promise<Tested>)
    testing = ''
    return tested
  },
}
