// The feed as far as it is read, and what can be done with a post.

import { SvelteSet } from 'svelte/reactivity'
import { attempt, succeeds } from '../../lib/notes.svelte'
import { Pages } from '../../lib/pages.svelte'
import { listen, rest } from '../../state/server'
import type { Post, Turn } from './types'

/** How many turns are planned, and have failed. */
export interface Open {
  planned: number
  next?: Turn // the planned one that is due first
  failed: number
}

export class Feed extends Pages<Post> {
  /** By post; '' = posts that members want to write themselves. */
  open = $state.raw(new Map<string, Open>())
  /** Grows by post when its turns may have changed. */
  turns = $state.raw<Record<string, number>>({})
  /** The posts whose thoughts are shown. */
  private thinking = new SvelteSet<string>()
  private timers = new Map<string, ReturnType<typeof setTimeout>>()
  private closed = false
  private turnTimer: ReturnType<typeof setTimeout> | undefined
  private stop: () => void

  constructor(
    readonly authorId: string,
    readonly favorites: boolean,
  ) {
    super((query) => rest.get('/circle/posts', { query: { ...query, ...(authorId && { authorId }), ...(favorites && { favorites }) } }), 20)
    this.stop = listen({
      snapshot: () => this.load(),
      event: (e) => {
        if (e.ev === 'circle.post') this.heard(e.data.post)
        if (e.ev === 'circle.post.deleted') this.drop(e.data.postId)
        if (e.ev === 'circle.comment' || e.ev === 'circle.comment.deleted' || e.ev === 'circle.like') this.soon(e.data.postId)
        if (e.ev === 'circle.failed' && e.data.postId) this.soon(e.data.postId)
        if (e.ev.startsWith('circle.')) this.lookAtTurns()
      },
    })
    void this.load()
  }

  override async load() {
    void this.readOpen()
    await super.load()
  }

  /** lookAtTurns has the turns read after a while; many changes at once are one. */
  private lookAtTurns(after = 300) {
    clearTimeout(this.turnTimer)
    if (!this.closed) this.turnTimer = setTimeout(() => void this.readOpen(), after)
  }

  close() {
    this.closed = true
    this.stop()
    clearTimeout(this.turnTimer)
    for (const timer of this.timers.values()) clearTimeout(timer)
  }

  /** fits tells whether a post belongs to what is shown. */
  private fits = (p: Post) => (!this.authorId || p.author.id === this.authorId) && (!this.favorites || p.favorite)

  private heard(p: Post) {
    if (this.list.some((old) => old.id === p.id)) return this.soon(p.id)
    const last = this.list.at(-1)
    if (this.loaded && this.fits(p) && (!last || !this.hasMore || p.createdAt > last.createdAt)) this.list = [p, ...this.list].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1))
  }

  private drop(id: string) {
    this.list = this.list.filter((p) => p.id !== id)
  }

  /** soon reads a post again; many changes at once are one. */
  private soon(id: string) {
    if (!this.list.some((p) => p.id === id)) return
    clearTimeout(this.timers.get(id))
    this.timers.set(
      id,
      setTimeout(() => void this.refresh(id), 120),
    )
  }

  async refresh(id: string) {
    this.timers.delete(id)
    const query = this.thinking.has(id) ? { thoughts: true } : {}
    const got = await rest.get('/circle/posts/{id}', { path: { id }, query }).catch(() => null)
    if (got) this.list = this.fits(got) ? this.list.map((p) => (p.id === id ? got : p)) : this.list.filter((p) => p.id !== id)
    this.turns = { ...this.turns, [id]: (this.turns[id] ?? 0) + 1 }
  }

  /** do changes something of a post, and shows the result at once. */
  private async do(p: Post, f: (path: { id: string }) => Promise<unknown>): Promise<boolean> {
    const ok = await succeeds(() => f({ id: p.id }))
    await this.refresh(p.id)
    return ok
  }

  like = (p: Post) => this.do(p, (path) => (p.liked ? rest.delete('/circle/posts/{id}/like', { path }) : rest.put('/circle/posts/{id}/like', { path })))
  favorite = (p: Post) => this.do(p, (path) => (p.favorite ? rest.delete('/circle/posts/{id}/favorite', { path }) : rest.put('/circle/posts/{id}/favorite', { path })))
  rate = (p: Post, rating: number) => this.do(p, (path) => rest.put('/circle/posts/{id}/rating', { path, body: { rating } }))
  comment = (p: Post, text: string, replyTo?: string) => this.do(p, (path) => rest.post('/circle/posts/{id}/comments', { path, body: { text, ...(replyTo && { replyTo }) } }))
  deleteComment = (p: Post, cid: string) => this.do(p, (path) => rest.delete('/circle/posts/{id}/comments/{cid}', { path: { ...path, cid } }))

  async delete(p: Post) {
    if (await succeeds(() => rest.delete('/circle/posts/{id}', { path: { id: p.id } }))) this.drop(p.id)
  }

  isThinking = (p: Post) => this.thinking.has(p.id)

  /** think shows the thoughts of a post and of what is below it, or hides them. */
  async think(p: Post) {
    if (!this.thinking.delete(p.id)) this.thinking.add(p.id)
    await this.refresh(p.id)
  }

  /** readAll reads the comments that a feed leaves out. */
  readAll = (p: Post) => this.refresh(p.id)

  async forward(p: Post, characterId: string, text: string): Promise<string | undefined> {
    const got = await attempt(() => rest.post('/circle/posts/{id}/forward', { path: { id: p.id }, body: { characterId, ...(text && { text }) } }))
    return got?.message?.conversationId
  }

  /** turnsOf are the turns about a post, or those that are to become posts. */
  turnsOf = (postId: string) => (postId ? attempt(async () => (await rest.get('/circle/posts/{id}/turns', { path: { id: postId } })).items) : Promise.resolve(this.own))

  /** now carries a turn out at once: one that is planned, or has failed. */
  async now(tid: string) {
    await succeeds(() => rest.post('/circle/turns/{id}/retry', { path: { id: tid } }))
    await this.readOpen()
  }

  private own: Turn[] = []

  /** readOpen reads which turns are planned or have failed. */
  private async readOpen() {
    const all = (await Promise.all((['planned', 'failed'] as const).map((state) => this.inState(state).catch(() => [])))).flat()
    const open = new Map<string, Open>()
    for (const t of all) {
      const o: Open = open.get(t.postId ?? '') ?? { planned: 0, failed: 0 }
      if (t.state === 'failed') o.failed++
      else o.planned++
      if (t.state === 'planned' && (!o.next || t.dueAt < o.next.dueAt)) o.next = t
      open.set(t.postId ?? '', o)
    }
    this.own = all.filter((t) => !t.postId).sort((a, b) => (a.dueAt < b.dueAt ? -1 : 1))
    this.open = open
    // A turn that ends without a word has no event: its time has come then.
    const due = Math.min(...all.filter((t) => t.state === 'planned').map((t) => Date.parse(t.dueAt)))
    if (Number.isFinite(due)) this.lookAtTurns(Math.min(Math.max(due - Date.now() + 5_000, 15_000), 3_600_000))
  }

  private async inState(state: Turn['state']): Promise<Turn[]> {
    const all: Turn[] = []
    for (let cursor: string | null = ''; cursor !== null && all.length < 1000; ) {
      const got: { items: Turn[]; nextCursor: string | null } = await rest.get('/circle/turns', { query: { state, limit: 200, ...(cursor && { cursor }) } })
      all.push(...got.items)
      cursor = got.nextCursor
    }
    return all
  }
}
