// What was deleted in this page, as long as that can be taken back: it is hidden, and
// deleted when the time is over or the page is left.

import { SvelteSet } from 'svelte/reactivity'
import { notes } from '../lib/notes.svelte'
import { common } from '../lib/words'

const hidden = new SvelteSet<string>()
const time = 10_000 // as long as the note is shown

export const deletion = {
  hides: (id: string) => hidden.has(id),
  /** begin hides the object with an id; run deletes it, and returns whether that worked. */
  begin(id: string, text: string, run: () => Promise<boolean>) {
    hidden.add(id)
    const stop = () => {
      clearTimeout(timer)
      removeEventListener('pagehide', end)
    }
    const end = async () => {
      stop()
      if (!(await run())) hidden.delete(id)
    }
    const timer = setTimeout(end, time)
    addEventListener('pagehide', end)
    const undo = () => {
      stop()
      hidden.delete(id)
    }
    notes.show(text, { action: { label: common.undo, run: undo } })
  },
}
