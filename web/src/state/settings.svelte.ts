// The settings of the user.

import { attempt } from '../lib/notes.svelte'
import type { Settings } from '../lib/types'
import { listen, rest } from './server'

let current = $state.raw<Settings | null>(null)

listen({
  snapshot: () => void (current && userSettings.read()),
  event: (e) => {
    if (e.ev === 'resource.updated' && e.data.kind === 'settings' && current && (e.data.version ?? 0) > current.version) void userSettings.read()
  },
})

export const userSettings = {
  get current() {
    return current
  },
  load() {
    if (!current) void this.read()
  },
  async read() {
    const got = await attempt(() => rest.get('/settings'))
    if (got) this.put(got)
  },
  put(s: Settings) {
    if (!current || current.version <= s.version) current = s
  },
  /** change stores some of them on top of the newest; undefined removes one. */
  async change(some: { [K in keyof Settings]?: Settings[K] | undefined }): Promise<boolean> {
    const got = await attempt(async () => {
      const newest = await rest.get('/settings')
      return rest.put('/settings', { body: { ...newest, ...some } as Settings, ifMatch: newest.version })
    })
    if (got) this.put(got)
    return got !== undefined
  },
}
