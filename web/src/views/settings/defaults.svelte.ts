// The user's settings: as they are stored, and as the form has them.

import { Failure } from '@nodest/client'
import { attempt, notes } from '../../lib/notes.svelte'
import type { Settings } from '../../lib/types'
import { common, errorText } from '../../lib/words'
import { deviceId, listen, rest } from '../../state/server'

type Fields = Partial<Settings>

let stored = $state.raw<Settings | null>(null)
let form = $state<Fields>({})
let behind = $state(false)
let saving = $state(false)

// What the server would store for an empty field is nothing.
const known = (v: unknown) => JSON.stringify(v === '' || v === undefined || (Array.isArray(v) && v.length === 0) ? null : v)
const copy = (s: Fields): Fields => JSON.parse(JSON.stringify(s))
const own = new Set(['version', 'updatedAt', 'deviceTimeZone'])

/** receive takes what the server has now; what differs from base in the form stays. */
function receive(now: Settings, base: Fields | null) {
  const old: Record<string, unknown> = base ?? {}
  const mine: Record<string, unknown> = $state.snapshot(form) as Fields
  const next: Record<string, unknown> = copy(now)
  if (base) for (const k of new Set([...Object.keys(mine), ...Object.keys(old)])) if (!own.has(k) && known(mine[k]) !== known(old[k])) next[k] = mine[k]
  stored = now
  form = next
}

async function put(fields: Fields): Promise<Settings> {
  const body = Object.fromEntries(Object.entries(fields).filter(([, v]) => known(v) !== 'null'))
  return rest.put('/settings', { body: { ...body, ifVersion: stored!.version } })
}

listen({
  snapshot: () => (stored ? defaults.load() : undefined),
  event: (e) => {
    if (stored && e.ev === 'resource.updated' && e.data.kind === 'settings' && e.by !== deviceId) void defaults.load()
  },
})

export const defaults = {
  get stored() {
    return stored
  },
  /** What the form shows; it may differ from what is stored. */
  get form() {
    return form
  },
  get changed() {
    const now: Record<string, unknown> = form
    const then: Record<string, unknown> = stored ?? {}
    return Object.keys({ ...now, ...then }).some((k) => !own.has(k) && known(now[k]) !== known(then[k]))
  },
  /** Whether another device stored something while this form was being filled in. */
  get behind() {
    return behind && this.changed
  },
  get saving() {
    return saving
  },

  async load() {
    const s = await attempt(() => rest.get('/settings'))
    if (!s) return
    const newer = stored !== null && s.version !== stored.version
    receive(s, stored)
    behind = newer && this.changed
  },

  discard() {
    behind = false
    if (stored) form = copy(stored)
  },

  /** save stores the form. If another device was faster, it says so and keeps the form. */
  async save(): Promise<boolean> {
    if (!stored || saving) return false
    const sent = $state.snapshot(form) as Fields
    saving = true
    try {
      receive(await put(sent), sent)
      behind = false
      notes.show(common.saved)
      return true
    } catch (e) {
      if (!(e instanceof Failure)) throw e
      if (e.code === 'precondition_failed') {
        await this.load()
        behind = true
      } else notes.show(errorText(e), { kind: 'error' })
      return false
    } finally {
      saving = false
    }
  },

  /** set stores single fields at once and leaves the rest of the form alone. */
  async set(fields: Fields): Promise<boolean> {
    const change = async () => receive(await put({ ...stored, ...fields }), stored)
    Object.assign(form, fields)
    return (
      (await attempt(async () => {
        await change().catch(async (e) => {
          if (!(e instanceof Failure) || e.code !== 'precondition_failed') throw e
          await this.load() // only these fields are replaced, so nothing of the other device is lost
          await change()
        })
        notes.show(common.saved)
        return true
      })) ?? false
    )
  },
}
