// A list of files that follows what happens to them: those of a knowledge base, or all
// of the user's own.

import { untrack } from 'svelte'
import { attempt, notes, succeeds } from '../../lib/notes.svelte'
import { plain } from '../../lib/format'
import { Pages } from '../../lib/pages.svelte'
import type { KnowledgeFile } from '../../lib/types'
import { listen, rest } from '../../state/server'
import { session } from '../../state/session.svelte'
import { fileWords as w } from './fileWords'

export const states = ['pending', 'parsing', 'chunking', 'embedding', 'ready', 'failed'] as const
export type FileState = (typeof states)[number]

/** busy is whether a file is being processed. */
export const busy = (f: KnowledgeFile) => f.state !== 'ready' && f.state !== 'failed'

const pause = 3000 // milliseconds between looks at files of others, of which no event tells

export class Files extends Pages<KnowledgeFile> {
  /** Only files in this state; only for the user's own. */
  state = $state<FileState | ''>('')
  private timer: ReturnType<typeof setTimeout> | undefined

  /** baseId '' = the user's own files. */
  constructor(readonly baseId: string) {
    super(
      (query) =>
        baseId
          ? rest.get('/knowledge-bases/{id}/files', { path: { id: baseId }, query })
          : rest.get('/files', { query: { ...query, ...(this.state && { state: this.state }) } }),
      100,
    )
  }

  /** follow keeps the list up to date until the returned function is called. */
  follow(): () => void {
    const stop = listen({
      snapshot: () => void this.load(),
      event: (e) => {
        if (e.ev === 'file.updated') this.put(e.data.file)
        else if (e.ev === 'file.deleted') this.list = this.list.filter((f) => f.id !== e.data.fileId)
        else if (e.ev === 'file.progress') this.change(e.data.fileId, { state: e.data.state, progress: { done: e.data.done, total: e.data.total } })
        else if (e.ev === 'knowledge.updated' && e.data.knowledgeBaseId === this.baseId) this.soon()
      },
    })
    const look = setInterval(() => {
      const others = untrack(() => this.list.some((f) => busy(f) && f.ownerId !== session.user?.id))
      if (others && document.visibilityState === 'visible') void this.load()
    }, pause)
    return () => {
      stop()
      clearInterval(look)
      clearTimeout(this.timer)
    }
  }

  /** soon reads the list again; many changes at once are one. */
  soon() {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => void this.load(), 150)
  }

  private change(id: string, to: Partial<KnowledgeFile>) {
    this.list = this.list.map((f) => (f.id === id ? { ...f, ...to } : f))
  }

  /** put takes in a file as it is now. What the user may do with it is the same. */
  private put(file: KnowledgeFile) {
    const known = this.list.find((f) => f.id === file.id)
    if (known && known.updatedAt <= file.updatedAt) this.list = this.list.map((f) => (f === known ? { ...file, access: known.access } : f))
    else if (!known) this.soon() // it may belong here
    if (known && this.state && file.state !== this.state) this.soon()
  }

  async retry(f: KnowledgeFile) {
    const got = await attempt(() => rest.post('/files/{id}/retry', { path: { id: f.id } }))
    if (got) this.put(got.file)
    else this.soon()
  }

  async remove(f: KnowledgeFile) {
    if (!(await succeeds(() => rest.delete('/knowledge-bases/{id}/files/{fid}', { path: { id: this.baseId, fid: f.id } })))) return
    this.list = this.list.filter((other) => other.id !== f.id)
    notes.show(w.removed(plain(f.name)))
  }

  async delete(f: KnowledgeFile) {
    if (await succeeds(() => rest.delete('/files/{id}', { path: { id: f.id } }))) this.list = this.list.filter((other) => other.id !== f.id)
  }
}
