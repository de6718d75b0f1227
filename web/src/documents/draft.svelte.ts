// The object that is being edited: the stored value, what was typed over it, and how both come
// together again when another device has stored something meanwhile.

import { Failure } from '@nodest/client'
import { attempt, notes } from '../lib/notes.svelte'
import type { Event } from '../lib/types'
import { deviceId, listen } from '../state/server'
import { merge, put, same, type Path } from './path'
import { docWords as w } from './words'

export interface Stored<T> {
  value: T
  version: number
}

export interface Source<T> {
  load(): Promise<Stored<T>>
  /** save stores what differs from stored, if that still has the version. */
  save(value: T, stored: Stored<T>): Promise<Stored<T>>
  /** heard returns the version that an event reports, or that it was deleted. */
  heard(e: Event): number | 'gone' | undefined
}

/** changes returns the members of a value that differ from the stored ones. */
export const changes = <T extends object>(value: T, stored: T): Partial<T> =>
  Object.fromEntries(Object.entries(value).filter(([k, v]) => !same(v, stored[k as keyof T]))) as Partial<T>

export class Draft<T extends object> {
  stored = $state.raw<Stored<T> | null>(null)
  value = $state.raw<T | null>(null)
  /** The value that another device has stored while this one had changes. */
  newer = $state.raw<Stored<T> | null>(null)
  saving = $state(false)
  gone = $state(false)
  /** True if there is nothing to edit. */
  missing = $state(false)

  private seen = 0

  constructor(private readonly source: Source<T>) {}

  get dirty(): boolean {
    return this.stored !== null && !same(this.stored.value, this.value)
  }

  /** The places that both devices have changed. */
  get both(): Path[] {
    return this.newer && this.stored ? merge(this.stored.value, this.value, this.newer.value).both : []
  }

  /** follow loads, and follows changes of other devices until the returned function is called. */
  follow(): () => void {
    void this.load()
    return listen({
      snapshot: () => this.load(),
      event: (e) => {
        const heard = this.source.heard(e)
        if (heard === 'gone') this.gone = !('by' in e && e.by === deviceId)
        else if (heard !== undefined) void this.changed(heard)
      },
    })
  }

  private async load() {
    const got = await attempt(() => this.source.load())
    this.missing = !got && !this.stored
    if (got) this.arrived(got)
  }

  /** changed is told about each version that was stored by anyone. */
  async changed(version: number) {
    this.seen = Math.max(this.seen, version)
    if (!this.saving && this.stored && this.seen > this.stored.version) await this.load()
  }

  /** arrived takes in what is stored now. */
  private arrived(got: Stored<T>) {
    const { stored, value } = this
    if (stored && value && got.version < stored.version) return
    if (!stored || !value || !this.dirty) {
      this.value = stored && same(stored.value, got.value) ? stored.value : got.value
      this.stored = { value: this.value, version: got.version }
      this.newer = null
    } else if (same(stored.value, got.value)) this.stored = { value: stored.value, version: got.version }
    else this.newer = got
  }

  put(path: Path, value: unknown) {
    if (this.value) this.value = put(this.value, path, value)
  }

  /** keep goes on with what was typed, on top of what the other device stored. */
  keep() {
    const { stored, value, newer } = this
    if (!stored || !value || !newer) return
    this.value = merge(stored.value, value, newer.value).value as T
    this.stored = newer
    this.newer = null
  }

  discard() {
    this.stored = this.newer ?? this.stored
    this.newer = null
    this.value = this.stored?.value ?? null
  }

  async save(): Promise<boolean> {
    const { stored, value } = this
    if (!stored || !value || this.saving) return false
    if (!this.dirty) return true
    if (this.newer) return false
    this.saving = true
    try {
      const got = await this.source.save(value, stored).catch(async (e) => {
        if (!(e instanceof Failure) || (e.code !== 'precondition_failed' && e.code !== 'conflict')) throw e
        await this.load()
        if (this.newer || !this.stored) throw e
        return this.source.save(value, this.stored) // another device has changed what is not edited here
      })
      this.value = (this.value === value ? got.value : merge(value, this.value, got.value).value) as T
      this.stored = got
      const newer = this.newer as Stored<T> | null // may have been read while this was being saved
      if (newer && newer.version <= got.version) this.newer = null
      notes.show(w.saved)
      return true
    } catch (e) {
      if (!(e instanceof Failure)) throw e
      if (!this.newer) await attempt(() => Promise.reject(e))
      return false
    } finally {
      this.saving = false
      void this.changed(this.seen)
    }
  }
}
