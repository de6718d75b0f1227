// A list that the server returns page by page, reloaded when it has changed.

import { attempt } from './notes.svelte'

interface Page<T> {
  items: T[]
  nextCursor: string | null
}

const longest = 200 // items per page that the server allows
const most = 1000 // items that are reloaded

/** everything reads all pages of a list. */
export async function everything<T>(page: (query: { limit: number; cursor?: string }) => Promise<Page<T>>): Promise<T[]> {
  const all: T[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const got: Page<T> = await page({ limit: longest, ...(cursor && { cursor }) })
    all.push(...got.items)
    cursor = got.nextCursor
  }
  return all
}

export class Pages<T extends { id: string }> {
  list = $state.raw<T[]>([])
  loaded = $state(false)
  private cursor = $state<string | null>(null)
  private turn = 0
  private reading = false

  constructor(
    private readonly page: (query: { limit: number; cursor?: string }) => Promise<Page<T>>,
    private readonly size = 50,
  ) {}

  get hasMore() {
    return this.cursor !== null
  }

  /** load reads as many items as are shown. If it is called again meanwhile, the last call wins. */
  async load() {
    const turn = ++this.turn
    const wanted = Math.min(most, Math.max(this.size, this.list.length))
    await attempt(async () => {
      const list: T[] = []
      let cursor: string | null = ''
      while (cursor !== null && list.length < wanted) {
        const got: Page<T> = await this.page({ limit: Math.min(longest, wanted - list.length), ...(cursor && { cursor }) })
        if (turn !== this.turn) return
        list.push(...got.items)
        cursor = got.nextCursor
      }
      this.list = list
      this.cursor = cursor
      this.loaded = true
    })
  }

  /** more reads on until there is something new. */
  async more() {
    const { turn, list } = this
    if (this.reading) return
    this.reading = true
    while (this.cursor !== null && this.list === list) {
      const { cursor } = this
      const got = await attempt(() => this.page({ limit: this.size, cursor }))
      if (!got || turn !== this.turn) break
      const known = new Set(list.map((item) => item.id))
      const added = got.items.filter((item) => !known.has(item.id))
      if (added.length > 0) this.list = [...list, ...added]
      this.cursor = got.nextCursor
    }
    this.reading = false
  }
}
