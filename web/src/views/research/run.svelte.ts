// One research that is shown: what is stored of it, and what is being done.

import { Failure } from '@nodest/client'
import { SvelteMap } from 'svelte/reactivity'
import { attempt } from '../../lib/notes.svelte'
import type { Event, Research } from '../../lib/types'
import { listen, rest } from '../../state/server'

/** The work that a member of the team is doing. */
export interface Doing {
  n: number
  member: number
  action: string
  question: string
  think: string
  queries: string[]
  urls: string[]
}

export const going = (r: { state: Research['state'] }) => r.state === 'queued' || r.state === 'running'

const pause = 4000 // milliseconds without an event, after which a run is read again
const soon = 150
const most = 8 // searches and pages of a member that are shown while it works

type Happened = Extract<Event, { ev: `research.${string}` }>
const happened = (e: Event): e is Happened => e.ev.startsWith('research.')

export class OpenRun {
  run = $state.raw<Research | null>(null)
  gone = $state(false)
  /** The work that is being done, by member. */
  doing = $state.raw<Doing[]>([])
  /** How reading a page went, by its address, as far as it was seen. */
  readonly visits = new SvelteMap<string, string>()
  /** The answer as it arrives. */
  answer = $state('')
  /** The tokens that are used. */
  used = $state(0)
  /** The work in milliseconds. */
  elapsed = $state(0)

  private turn = 0
  private heard = 0
  private readAt = 0
  private paidAt = 0 // when the work that is stored has become more
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(readonly id: string) {}

  /** follow keeps the run up to date until the returned function is called. */
  follow(): () => void {
    void this.load()
    const stop = listen({ snapshot: () => this.later(), event: (e) => happened(e) && e.data.researchId === this.id && this.take(e) })
    // Not all events reach this process of the server, and some are lost with the connection.
    const look = setInterval(() => {
      if (!this.run || !going(this.run)) return
      if (this.run.state === 'running') this.elapsed = Math.max(this.elapsed, this.run.usage.ms + Date.now() - this.paidAt)
      if (document.visibilityState === 'visible' && Date.now() - Math.max(this.heard, this.readAt) > pause) void this.load()
    }, 1000)
    return () => {
      this.turn++
      stop()
      clearInterval(look)
      clearTimeout(this.timer)
    }
  }

  async load() {
    const turn = ++this.turn
    await attempt(async () => {
      try {
        const got = await rest.get('/research/{id}', { path: { id: this.id } })
        if (turn === this.turn) this.put(got)
      } catch (e) {
        if (!(e instanceof Failure && e.status === 404)) throw e
        if (turn === this.turn) this.lose()
      }
    })
  }

  /** put shows what is stored of it now. */
  put(r: Research) {
    this.turn++
    this.readAt = Date.now()
    if (this.run?.state !== r.state || this.run.usage.ms !== r.usage.ms) this.paidAt = this.readAt
    this.run = r
    this.used = r.usage.promptTokens + r.usage.completionTokens
    this.elapsed = going(r) ? Math.max(this.elapsed, r.usage.ms) : r.usage.ms
    const done = (d: Doing) => r.steps.some((s) => s.n === d.n && s.member === d.member)
    this.doing = going(r) ? this.doing.filter((d) => !done(d)) : []
    if (!going(r)) this.answer = ''
  }

  /** lose shows that the run was removed. */
  private lose() {
    this.turn++
    clearTimeout(this.timer)
    this.run = null
    this.gone = true
  }

  private later() {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => void this.load(), soon)
  }

  private take(e: Happened) {
    this.heard = Date.now()
    if (e.ev === 'research.step') {
      const { n, member, action, question } = e.data
      this.doing = [...this.doing.filter((d) => d.member !== member), { n, member, action, question, think: '', queries: [], urls: [] }]
      this.later() // the step before it is stored
    } else if (e.ev === 'research.think') this.change(e.data.member, { think: e.data.text })
    else if (e.ev === 'research.search') {
      const { member, query } = e.data
      this.change(member, (d) => ({ queries: [...d.queries.filter((q) => q !== query), query].slice(-most) }))
    } else if (e.ev === 'research.visit') {
      const { member, url, state } = e.data
      this.visits.set(url, state)
      if (state === 'reading') this.change(member, (d) => ({ urls: [...d.urls.filter((u) => u !== url), url].slice(-most) }))
    } else if (e.ev === 'research.budget') this.used = Math.max(this.used, e.data.used)
    else if (e.ev === 'research.delta') this.answer = [...this.answer].slice(0, e.data.off).join('') + e.data.text
    else if (e.ev === 'research.removed') this.lose()
    else this.later()
  }

  /** change says more of what a member is doing. */
  private change(member: number, to: Partial<Doing> | ((d: Doing) => Partial<Doing>)) {
    this.doing = this.doing.map((d) => (d.member === member ? { ...d, ...(typeof to === 'function' ? to(d) : to) } : d))
  }
}
