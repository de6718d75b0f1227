// The OpenAI-compatible servers that owners have added, for owners.

import { attempt, succeeds } from '../../../lib/notes.svelte'
import type { ModelServer, ModelServerTest } from '../../../lib/types'
import { rest } from '../../../state/server'
import { providers } from './providers.svelte'

/** What an owner gives for a server; a key that is absent stays as it is stored. */
export interface ServerForm {
  baseUrl: string
  model: string
  key?: string
}

let list = $state.raw<ModelServer[] | null>(null)

export const servers = {
  find: (name: string) => list?.find((s) => s.name === name),
  async load() {
    const page = await attempt(() => rest.get('/servers'))
    if (page) list = page.items
  },
  async put(name: string, body: ServerForm): Promise<boolean> {
    if (!(await attempt(() => rest.put('/servers/{name}', { path: { name }, body })))) return false
    await Promise.all([servers.load(), providers.load()])
    return true
  },
  async remove(name: string): Promise<boolean> {
    if (!(await succeeds(() => rest.delete('/servers/{name}', { path: { name } })))) return false
    await Promise.all([servers.load(), providers.load()])
    return true
  },
  /** test asks a server for its models; the stored key of the server of that name may be used. */
  test: (name: string, baseUrl: string, key?: string): Promise<ModelServerTest | undefined> =>
    attempt(() => rest.post('/servers/{name}/test', { path: { name }, body: key === undefined ? { baseUrl } : { baseUrl, key } })),
}
