// What the page knows: characters, conversations and the open chat, kept up to
// date by the events of the connection.

import { Failure, newKey, request, type Branch, type Character, type Conversation, type Message, type SavePoint, type Snapshot } from './api'
import { Connection, type Active, type Event } from './socket'

/** Text of a reply that is being written, by message id. */
interface Live {
  generationId: string
  text: string
  length: number // in code points, as the server counts
}

export class Chat {
  signedIn = $state<boolean | null>(null) // null = not known yet
  state = $state<'connecting' | 'open' | 'waiting'>('connecting')
  characters = $state<Character[]>([])
  conversations = $state<Conversation[]>([])
  openId = $state('')
  messages = $state<Message[]>([])
  live = $state<Record<string, Live>>({})
  problem = $state('')
  offline = $state(false)
  older = $state(false)
  deleted = $state('') // message that undo brings back
  panel = $state<'' | 'memory' | 'settings'>('') // what is shown beside the chat
  remembered = $state(0) // grows with every change of the open character's memory
  summarised = $state(0) // likewise of the open chat's summary

  private connection = new Connection({
    event: (e) => this.event(e),
    reload: () => this.load(),
    active: (list) => this.attachAll(list),
    state: (s) => (this.state = s),
    signedOut: () => (this.signedIn = false),
  })

  get open(): Conversation | undefined {
    return this.conversations.find((c) => c.id === this.openId)
  }

  /** running is the generation of the open chat, "" without one. */
  get running(): string {
    for (const m of this.messages) {
      const live = this.live[m.id]
      if (live && (m.status === 'pending' || m.status === 'streaming')) return live.generationId
    }
    return ''
  }

  nameOf(conversation: Conversation): string {
    return this.characters.find((c) => c.id === conversation.characterId)?.name ?? ''
  }

  /** begin signs in with the link of the address, if there is one, and loads. */
  async begin() {
    const link = location.pathname === '/signin' ? location.hash.slice(1) : ''
    if (link) {
      history.replaceState(null, '', '/')
      await this.attempt(() => request('POST', '/auth/signin', { link }))
    }
    try {
      this.connection.start(await this.load())
    } catch (e) {
      if (!(e instanceof Failure)) throw e
      this.signedIn = false
      if (e.code !== 'unauthenticated') this.problem = e.message
    }
  }

  async signIn(username: string, password: string) {
    const ok = await this.attempt(() => request('POST', '/auth/login', { username, password }))
    if (ok) await this.begin()
  }

  /** signInWith takes a token, or a sign-in link that was pasted. */
  async signInWith(secret: string) {
    const link = secret.split('/signin#')[1]
    const ok = await this.attempt(() => request('POST', '/auth/signin', link ? { link: link.trim() } : { token: secret.trim() }))
    if (ok) await this.begin()
  }

  /** load reads everything that is shown. */
  private async load(): Promise<{ epoch: string; seq: number }> {
    const snapshot = await request<Snapshot>('GET', '/sync')
    this.signedIn = true
    this.characters = snapshot.characters
    this.conversations = snapshot.conversations
    this.remembered++
    this.summarised++
    if (this.openId) await this.loadMessages()
    else if (this.conversations[0]) await this.show(this.conversations[0].id)
    void this.lookForModel()
    return { epoch: snapshot.epoch, seq: snapshot.seq }
  }

  /** lookForModel finds out whether only the offline demo answers. */
  private async lookForModel() {
    const list = await request<{ items: { name: string; default: boolean }[] }>('GET', '/providers').catch(() => null)
    this.offline = list?.items.some((p) => p.default && p.name === 'offline') ?? this.offline
  }

  async show(id: string) {
    this.openId = id
    this.messages = []
    this.deleted = ''
    await this.attempt(() => this.loadMessages())
  }

  private turn = 0 // of the newest reading of the open chat
  private arrived: Map<string, Message> | null = null // what events told since it was asked for

  /** loadMessages reads the end of the open chat anew, or what stands before a message. */
  private async loadMessages(before = '') {
    const id = this.openId
    const turn = before ? this.turn : ++this.turn
    const arrived = new Map<string, Message>()
    if (!before) this.arrived = arrived
    let page: { items: Message[]; nextCursor: string | null }
    try {
      page = await request('GET', `/conversations/${id}/messages?limit=50${before ? '&before=' + before : ''}`)
    } finally {
      if (this.arrived === arrived) this.arrived = null
    }
    if (id !== this.openId || turn !== this.turn) return // something newer is shown, or asked for
    this.messages = before ? [...page.items, ...this.messages] : page.items
    this.older = page.nextCursor !== null
    for (const m of arrived.values()) this.message(m) // the answer may be older than these
  }

  async loadOlder() {
    const first = this.messages[0]
    if (first) await this.attempt(() => this.loadMessages(first.id))
  }

  async importCard(file: File) {
    const form = new FormData()
    form.append('file', file)
    await this.attempt(async () => {
      const got = await request<{ character: Character }>('POST', '/characters/import', form)
      await this.talkTo(got.character)
    })
  }

  async sample() {
    await this.attempt(async () => {
      const got = await request<{ character: Character }>('POST', '/characters/sample')
      await this.talkTo(got.character)
    })
  }

  /** talkTo begins a new conversation with a character. */
  async talkTo(character: Character) {
    const conversation = await request<Conversation>('POST', '/conversations', { characterId: character.id })
    if (!this.characters.some((c) => c.id === character.id)) this.characters = [character, ...this.characters]
    this.put(conversation)
    await this.show(conversation.id)
  }

  async send(text: string): Promise<boolean> {
    return this.attempt(() => this.connection.send('chat.send', { conversationId: this.openId, text, clientMsgId: newKey() }))
  }

  async stop() {
    const generationId = this.running
    if (generationId) await this.attempt(() => this.connection.send('gen.cancel', { generationId }, false))
  }

  /** edit changes a text: of a user's message on a branch of its own, with an answer. */
  async edit(m: Message, text: string): Promise<boolean> {
    const branch = m.role === 'user'
    const data = { messageId: m.id, text, ifRev: m.rev, mode: branch ? 'branch' : 'in_place', regenerate: branch }
    return this.attempt(() => this.connection.send('message.edit', data))
  }

  async remove(m: Message) {
    if (await this.attempt(() => this.connection.send('message.delete', { messageId: m.id, scope: 'one' }))) this.deleted = m.id
  }

  /** undo brings back the message that was deleted last. */
  async undo() {
    const messageId = this.deleted
    this.deleted = ''
    if (messageId) await this.attempt(() => this.connection.send('message.restore', { messageId }))
  }

  /** fork goes on in a copy of the chat up to a message. */
  async fork(m: Message) {
    await this.attempt(async () => {
      const copy = await request<Conversation>('POST', `/conversations/${this.openId}/fork`, { messageId: m.id })
      if (copy.copying) {
        this.problem = 'This long chat is being copied. The copy appears in the list when it is complete.'
        return
      }
      this.put(copy)
      await this.show(copy.id)
    })
  }

  async reset() {
    await this.attempt(() => this.connection.send('chat.reset', { conversationId: this.openId }))
  }

  async save(description: string): Promise<boolean> {
    return this.attempt(() => this.connection.send('save.create', { conversationId: this.openId, description }))
  }

  async restore(s: SavePoint) {
    await this.attempt(() => this.connection.send('save.restore', { saveId: s.id }))
  }

  async showBranch(b: Branch) {
    await this.attempt(() => this.connection.send('chat.head', { conversationId: this.openId, messageId: b.head.id }))
  }

  /** places are the ends of the open chat's branches and its newest save points. */
  async places(): Promise<{ branches: Branch[]; saves: SavePoint[] }> {
    const path = `/conversations/${this.openId}`
    const found = { branches: [] as Branch[], saves: [] as SavePoint[] }
    await this.attempt(async () => {
      found.branches = (await request<{ items: Branch[] }>('GET', path + '/branches?limit=50')).items
      found.saves = (await request<{ items: SavePoint[] }>('GET', path + '/saves?automatic=true&limit=50')).items
    })
    return found
  }

  async regenerate(m: Message) {
    await this.attempt(() => this.connection.send('gen.regenerate', { messageId: m.id }))
  }

  async swipe(m: Message, to: 'next' | 'prev') {
    await this.attempt(() => this.connection.send('message.swipe', { messageId: m.id, swipe: to, ifRev: m.rev }))
  }

  /** attempt shows what went wrong; it returns whether nothing did. */
  async attempt(f: () => Promise<unknown>): Promise<boolean> {
    this.problem = ''
    try {
      await f()
      return true
    } catch (e) {
      if (!(e instanceof Failure)) throw e
      this.problem = e.message
      return false
    }
  }

  private event(e: Event) {
    switch (e.ev) {
      case 'message.created':
      case 'message.updated':
        return this.message(e.data.message)
      case 'message.deleted':
      case 'message.restored':
        if (e.conversationId === this.openId) void this.attempt(() => this.loadMessages())
        return
      case 'chat.created':
        return this.put(e.data.conversation)
      case 'chat.updated':
        this.put(e.data.conversation)
        if (e.conversationId === this.openId && e.data.conversation.headId !== (this.messages.at(-1)?.id ?? null)) {
          void this.attempt(() => this.loadMessages()) // another branch is shown
        }
        return
      case 'chat.deleted':
        this.conversations = this.conversations.filter((c) => c.id !== e.conversationId)
        if (this.openId === e.conversationId) this.openId = ''
        return
      case 'character.created':
      case 'character.updated':
        return void this.loadCharacters()
      case 'memory.written':
        if (e.data.characterId === this.open?.characterId) this.remembered++
        return
      case 'memory.suggestion':
        this.remembered++
        return
      case 'memory.summary':
        if (e.conversationId === this.openId) this.summarised++
        return
      case 'gen.started':
        if (e.messageId) this.live[e.messageId] = { generationId: e.generationId!, text: '', length: 0 }
        return
      case 'gen.delta':
        return this.delta(e)
      case 'gen.rewind':
        return this.rewind(e.messageId ?? '', e.off ?? 0)
      case 'gen.behind':
        return this.attach(e.generationId!)
      case 'gen.done':
      case 'gen.failed':
        if (e.messageId) delete this.live[e.messageId]
        if (e.ev === 'gen.failed' && e.conversationId === this.openId) this.problem = e.data.error?.detail ?? ''
    }
  }

  private async loadCharacters() {
    const found: Character[] = []
    for (let cursor = ''; ; ) {
      const page = await request<{ items: Character[]; nextCursor: string | null }>('GET', `/characters?limit=50&cursor=${cursor}`).catch(() => null)
      if (!page) return // the next event asks again
      found.push(...page.items)
      if (!page.nextCursor) break
      cursor = encodeURIComponent(page.nextCursor)
    }
    this.characters = found
  }

  private put(conversation: Conversation) {
    this.conversations = [conversation, ...this.conversations.filter((c) => c.id !== conversation.id)]
  }

  /**
   * message takes in a message of the open chat. A new one follows the last one; one
   * that is being written beside a shown one takes its place for the time being, and
   * chat.updated or message.deleted tells what came of it.
   */
  private message(m: Message) {
    const chat = this.conversations.find((c) => c.id === m.conversationId)
    if (chat && m.text && m.createdAt >= (chat.lastMessage?.createdAt ?? '')) {
      chat.lastMessage = { text: m.text.slice(0, 200), createdAt: m.createdAt }
    }
    if (m.conversationId !== this.openId) return
    this.arrived?.set(m.id, m)
    const at = this.messages.findIndex((old) => old.id === m.id)
    if (at >= 0) {
      if (m.rev >= this.messages[at]!.rev) this.messages[at] = m
      return
    }
    const parent = this.messages.findIndex((old) => old.id === m.parentId)
    if (parent === this.messages.length - 1 || (parent >= 0 && m.status === 'pending')) {
      this.messages = [...this.messages.slice(0, parent + 1), m]
    }
  }

  /** delta adds text where it belongs; a hole is filled by asking. */
  private delta(e: Event) {
    if (e.data.part !== 'text' || !e.messageId) return
    const live = (this.live[e.messageId] ??= { generationId: e.generationId!, text: '', length: 0 })
    const points = Array.from(e.data.text as string)
    const seen = live.length - (e.off ?? 0)
    if (seen < 0) return this.attach(live.generationId, live.length)
    live.text += points.slice(seen).join('')
    live.length = Math.max(live.length, (e.off ?? 0) + points.length)
  }

  /** rewind takes back the text behind off: it was thought. */
  private rewind(messageId: string, off: number) {
    const live = this.live[messageId]
    if (!live || live.length <= off) return
    live.text = Array.from(live.text).slice(0, off).join('')
    live.length = off
  }

  private attachAll(list: Active[]) {
    for (const a of list) {
      const live = (this.live[a.messageId] ??= { generationId: a.generationId, text: '', length: 0 })
      this.attach(a.generationId, live.length)
    }
  }

  /** attach asks for the text from off; it comes as the answer and as deltas. */
  private attach(generationId: string, off?: number) {
    const from = off ?? Object.values(this.live).find((l) => l.generationId === generationId)?.length ?? 0
    this.connection
      .send<any>('gen.attach', { generationId, off: from }, false)
      .then((got) => {
        if (got?.messageId && got.off < from) { // what we have was taken back
          this.rewind(got.messageId, 0)
          return this.attach(generationId, 0)
        }
        if (got?.text && got.messageId) {
          this.delta({ ev: 'gen.delta', generationId, messageId: got.messageId, off: got.off, data: { part: 'text', text: got.text } })
        }
      })
      .catch(() => undefined) // it has ended: message.updated brings the text
  }
}
