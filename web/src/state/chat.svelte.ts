// The chat that is open: its messages, and the replies that are being written in it.

import { SvelteMap } from 'svelte/reactivity'
import { Failure, type Commands, type components, type End } from '@nodest/client'
import { attempt, notes, succeeds } from '../lib/notes.svelte'
import type { Message, Reply, Swipe } from '../lib/types'
import { common, storedText } from '../lib/words'
import { chatWords } from '../views/chat/words'
import { chats } from './chats.svelte'
import { client, connection, listen, replies, rest } from './server'

type Tree = components['schemas']['Tree']
type Run = Tree['items'][number]

const page = 50
/** pause is the time between two updates of a text that is being written: a longer one is more work to draw. */
const pause = (text: string) => Math.min(250, 50 + text.length / 1000) // milliseconds

/** Live is the text of a message that is being written. */
export class Live {
  text = $state('')
  reasoning = $state('')
  stage = $state<Reply['stage']>('')
  blocks = $state.raw<Reply['blocks']>([])
  kind = $state<Reply['kind']>()
  private timer: ReturnType<typeof setTimeout> | undefined
  private taken = 0

  constructor(private reply: Reply) {
    this.take()
  }

  get generationId() {
    return this.reply.generationId
  }

  update(r: Reply) {
    this.reply = r
    this.timer ??= setTimeout(() => this.take(), Math.max(0, this.taken + pause(r.text) - performance.now()))
  }

  /** take shows what has arrived. */
  take() {
    clearTimeout(this.timer)
    this.timer = undefined
    this.taken = performance.now()
    const r = this.reply
    this.text = r.text
    this.reasoning = r.reasoning
    this.stage = r.stage
    this.kind = r.kind
    if (r.blocks.length > 0 || this.blocks.length > 0) this.blocks = [...r.blocks]
  }
}

const writing = (m: Message) => m.status === 'pending' || m.status === 'streaming'

export class OpenChat {
  messages = $state.raw<Message[]>([])
  loaded = $state(false)
  /** True if there are messages before those that are loaded. */
  older = $state(false)
  /** True if there are messages after them: they are around one that was looked for. */
  newer = $state(false)
  /** Replies that are being written, by message. */
  live = new SvelteMap<string, Live>()
  /** The wording of messages that are being edited: it outlives a scroll out of view. */
  edits = new SvelteMap<string, string>()
  /** The message that was looked for, while it is marked. */
  sought = $state('')
  /** Where the chat branches; null before it is known. */
  tree = $state.raw<Tree | null>(null)
  private readonly runs = $derived(new Map(this.tree?.items.map((r) => [r.id, r])))
  /** The shown text of the last interrupted reply, by message. */
  private cut = new SvelteMap<string, { generationId: string; text: string }>()
  /** How the last reply that was shown here ended; null = one is being written, or nothing tells. */
  private how: End | null = null
  private loading = 0
  private seeking = ''
  private displays = false // scripts or files change how messages look, which events do not tell
  private forked = false // a branch was begun that the tree does not have
  private arrived: Map<string, Message> | null = null // messages that arrive while a page is read
  private stop: () => void

  constructor(readonly id: string) {
    this.stop = listen({
      snapshot: () => this.load(),
      reply: (r) => this.reply(r),
      ended: (r, how) => this.ended(r, how),
      event: (e) => {
        if (!('conversationId' in e) || e.conversationId !== this.id) return
        if (e.ev === 'message.created' || e.ev === 'message.updated') this.arrive(e.data.message)
        if (e.ev === 'message.deleted') this.messages = this.messages.filter((m) => !e.data.messageIds.includes(m.id))
        if (e.ev === 'message.deleted' || e.ev === 'message.restored') void this.load()
        if (e.ev === 'chat.updated') this.head(e.data.conversation.headId)
        if (e.ev === 'gen.failed' && this.messages.find((m) => m.id === e.messageId)?.status !== 'error') {
          notes.show(storedText(e.data.error), { kind: 'error' })
        }
      },
    })
    void this.load()
  }

  close() {
    this.stop()
  }

  /** running is the generation whose reply is being written, if there is one. */
  get running(): string {
    for (const live of this.live.values()) return live.generationId
    return this.messages.findLast(writing)?.generationId ?? ''
  }

  /** outcome is how the last reply ended. */
  get outcome(): 'finished' | 'cancelled' | 'error' {
    const status = this.messages.at(-1)?.status
    if (this.how?.ev === 'gen.failed' || status === 'error') return 'error'
    return status === 'cancelled' || (this.how?.ev === 'gen.done' && this.how.data.status === 'cancelled') ? 'cancelled' : 'finished'
  }

  /** writing returns whether the text of a message, or another swipe of it, is being written. */
  writing(m: Message): boolean {
    return writing(m) || this.live.has(m.id)
  }

  /** load reads again what is shown: the newest messages of the branch, or those around one. */
  async load() {
    const around = this.newer ? this.messages[this.messages.length >> 1]?.id : ''
    if ((await this.take(around ?? '')) === 'absent') await this.loadNewest()
  }

  async loadNewest() {
    await this.take('')
  }

  /** take shows the messages around one, or the newest. They may be absent from the shown branch. */
  private async take(around: string): Promise<'taken' | 'absent' | 'overtaken' | 'failed'> {
    const turn = ++this.loading
    const arrived = (this.arrived = new Map<string, Message>())
    const got = await attempt(() => (around ? this.around(around) : this.newest()))
    if (turn !== this.loading) return 'overtaken' // something newer was asked for
    this.arrived = null
    this.loaded = true
    if (!got) return got === null ? 'absent' : 'failed'
    const known = new Map(this.messages.map((m) => [m.id, m]))
    this.messages = got.items.map((m) => (known.get(m.id)?.rev === m.rev && !this.displays ? known.get(m.id)! : m))
    this.older = got.older
    this.newer = got.newer
    for (const m of arrived.values()) this.message(m) // the answer may be older than these
    this.adopt(this.messages)
    void this.loadTree()
    return 'taken'
  }

  private async read(query: { limit: number; before?: string; after?: string }) {
    const got = await rest.get('/conversations/{id}/messages', { path: { id: this.id }, query })
    this.displays ||= got.displays ?? false
    return got
  }

  private async newest() {
    const got = await this.read({ limit: Math.min(200, Math.max(page, this.messages.length)) })
    return { items: got.items, older: got.nextCursor !== null, newer: false }
  }

  private async around(messageId: string) {
    const limit = this.newer ? Math.min(200, Math.max(page, this.messages.length >> 1)) : page
    try {
      const [m, before, after] = await Promise.all([rest.get('/messages/{id}', { path: { id: messageId } }), this.read({ limit, before: messageId }), this.read({ limit, after: messageId })])
      return { items: [...before.items, m, ...after.items], older: before.nextCursor !== null, newer: after.nextCursor !== null }
    } catch (e) {
      if (e instanceof Failure && e.code === 'not_found') return null
      throw e
    }
  }

  /** adopt takes in what is being written of messages. */
  private adopt(messages: Message[]) {
    for (const m of messages) {
      const reply = replies.of(m.id)
      if (reply) this.reply(reply)
    }
  }

  async loadTree() {
    const turn = this.loading
    this.forked = false
    const tree = await rest.get('/conversations/{id}/tree', { path: { id: this.id } }).catch(() => null)
    if (tree && turn === this.loading) this.tree = tree
  }

  /** branches are the alternatives to a message: the runs that begin where it does. */
  branches(m: Message): Run[] {
    const run = this.runs.get(m.id)
    return run ? this.tree!.items.filter((r) => r.parentId === run.parentId) : []
  }

  async loadOlder() {
    const first = this.messages[0]
    const turn = this.loading
    if (!first || !this.older) return
    const got = await attempt(() => this.read({ limit: page, before: first.id }))
    if (!got || turn !== this.loading || this.messages[0]?.id !== first.id) return
    this.messages = [...got.items, ...this.messages]
    this.older = got.nextCursor !== null
  }

  async loadNewer() {
    const last = this.messages.at(-1)
    const turn = this.loading
    if (!last || !this.newer) return
    const got = await attempt(() => this.read({ limit: page, after: last.id }))
    if (!got || turn !== this.loading || this.messages.at(-1)?.id !== last.id) return
    this.messages = [...this.messages, ...got.items]
    this.newer = got.nextCursor !== null
    this.adopt(got.items)
  }

  /** seek shows the messages around one, if need be on another branch; it returns whether it is there. */
  async seek(messageId: string): Promise<boolean> {
    this.seeking = messageId
    const here = () => this.messages.some((m) => m.id === messageId)
    if (!here() && (await this.reach(messageId)) === 'absent') {
      const before = chats.get(this.id)?.headId ?? this.messages.at(-1)?.id
      const shown = await succeeds(() => rest.put('/conversations/{id}/head', { path: { id: this.id }, body: { messageId, toEnd: true } }))
      if (shown && (await this.reach(messageId)) === 'taken') {
        notes.show(chatWords.otherBranch, before ? { action: { label: chatWords.previousShown, run: () => void this.show(before) } } : {})
      }
    }
    if (this.seeking !== messageId) return false // another one is looked for
    this.sought = here() ? messageId : ''
    if (!here()) void this.load()
    return here()
  }

  /** reach shows the messages around one, whatever changes the chat meanwhile. */
  private async reach(messageId: string) {
    for (;;) {
      const how = await this.take(messageId)
      if (how !== 'overtaken' || this.seeking !== messageId) return how
    }
  }

  /**
   * message takes in a message. A new one follows the last one; one that is being
   * written beside a shown one takes its place for the time being, and chat.updated or
   * message.deleted tells what came of it.
   */
  private message(m: Message) {
    this.arrived?.set(m.id, m)
    const at = this.messages.findIndex((old) => old.id === m.id)
    if (at >= 0) {
      if (m.rev >= this.messages[at]!.rev) this.messages = this.messages.with(at, m)
      return
    }
    const parent = this.messages.findIndex((old) => old.id === m.parentId)
    if ((parent === this.messages.length - 1 && !this.newer) || (parent >= 0 && m.status === 'pending')) {
      this.forked ||= this.newer || parent < this.messages.length - 1
      this.newer = false
      this.messages = [...this.messages.slice(0, parent + 1), m]
    }
  }

  /** arrive takes in the message of an event, and then how it looks. */
  private arrive(m: Message) {
    this.message(m)
    if (!this.displays || writing(m)) return
    void rest
      .get('/messages/{id}', { path: { id: m.id } })
      .then((now) => this.message(now))
      .catch(() => {}) // it is shown as it is stored
  }

  private head(id: string | null) {
    if (id !== (this.messages.at(-1)?.id ?? null)) void this.load()
    else if (this.forked) void this.loadTree()
  }

  private reply(r: Reply) {
    if (r.conversationId !== this.id || !r.messageId) return
    const live = this.live.get(r.messageId)
    if (live?.generationId === r.generationId) return live.update(r)
    this.how = null
    this.cut.delete(r.messageId)
    this.live.set(r.messageId, new Live(r))
  }

  /** ended: the message has its final text, or its old one. */
  private ended(r: Reply, how: End | null) {
    if (!r.messageId || this.live.get(r.messageId)?.generationId !== r.generationId) return
    this.how = how
    this.live.delete(r.messageId)
    const whole = how?.ev === 'gen.done' && how.data.status !== 'interrupted'
    if (r.text && !whole) this.cut.set(r.messageId, { generationId: r.generationId, text: r.text })
  }

  /**
   * interrupted is a reply that was interrupted while it was shown: its text, whether the
   * message shows what is stored of it, and if not, the swipe that has it; there may be
   * none. The message may tell its end before or after the reply does.
   */
  interrupted(m: Message): { text: string; shown: boolean; swipe?: Swipe | undefined } | undefined {
    const cut = this.cut.get(m.id)
    if (!cut || this.writing(m)) return undefined
    const swipe = m.swipes.find((s) => s.generationId === cut.generationId)
    if (swipe && swipe !== m.swipes[m.swipeIndex]) return { text: cut.text, shown: false, swipe }
    if (cut.text.startsWith(m.text)) return cut.text.length > m.text.length ? { text: cut.text, shown: true } : undefined
    return swipe ? undefined : { text: cut.text, shown: false }
  }

  private do<C extends keyof Commands>(cmd: C, data: Commands[C]['data']): Promise<boolean> {
    return succeeds(() => connection.send(cmd, data))
  }

  async cancel() {
    const generationId = this.running
    if (generationId) await this.do('gen.cancel', { generationId })
  }

  regenerate(m: Message, wish?: string, options?: Commands['gen.regenerate']['data']['options']) {
    return this.do('gen.regenerate', { messageId: m.id, ...(wish && { wish }), ...(options && { options }) })
  }

  /** answer has a message of the user answered that lost its reply. */
  answer(m: Message) {
    return this.do('message.edit', { messageId: m.id, text: m.text, ifRev: m.rev, regenerate: true })
  }

  continue(m: Message) {
    return this.do('gen.continue', { messageId: m.id })
  }

  /** impersonate lets the model write the user's next message; it yields the text. */
  async impersonate(show: (text: string) => void) {
    await attempt(async () => {
      const { generationId } = await connection.send('gen.impersonate', { conversationId: this.id })
      if (generationId) for await (const r of client.watch(generationId)) show(r.text)
    })
  }

  /** swipe shows another text of a message: the next one, the one before, or one by its id. */
  swipe(m: Message, to: string) {
    return this.do('message.swipe', { messageId: m.id, swipe: to, ifRev: m.rev, ...(to === 'next' && { generateIfLast: true }) })
  }

  /** edit changes a text in place; or, as a branch of its own, and has it answered. */
  async edit(m: Message, text: string, branch: boolean) {
    if (!(await this.do('message.edit', { messageId: m.id, text, ifRev: m.rev, mode: branch ? 'branch' : 'in_place', ...(branch && { regenerate: true }) }))) return
    this.cut.delete(m.id)
    this.edits.delete(m.id) // the message itself may have left the view by now
  }

  async remove(m: Message, scope: 'one' | 'after' | 'swipe') {
    if (!(await this.do('message.delete', { messageId: m.id, scope }))) return
    notes.show(scope === 'swipe' ? chatWords.swipeDeleted : scope === 'after' ? chatWords.messagesDeleted : chatWords.messageDeleted, {
      action: { label: common.undo, run: () => void this.do('message.restore', { messageId: m.id }) },
    })
  }

  /** hide keeps a message out of prompts and memories, or takes it in again. */
  hide(m: Message, hidden: boolean) {
    return this.do('message.hide', { messageId: m.id, hidden, ifRev: m.rev })
  }

  show(messageId: string) {
    return this.do('chat.head', { conversationId: this.id, messageId })
  }

  save(description: string) {
    return this.do('save.create', { conversationId: this.id, description })
  }

  restore(saveId: string) {
    return this.do('save.restore', { saveId })
  }

  reset() {
    return this.do('chat.reset', { conversationId: this.id })
  }
}
