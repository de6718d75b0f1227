// Things that the user has deleted, while it can be undone: they are hidden, and deleted when the
// time is over or the page is left.

import { SvelteSet } from 'svelte/reactivity'
import { Failure } from '@nodest/client'
import { notes, succeeds } from '../lib/notes.svelte'
import { common } from '../lib/words'

const hidden = new SvelteSet<string>()
const time = 10_000 // as long as the note is shown

/** unlessGone fails, unless another device was faster. */
function unlessGone(e: unknown) {
  if (!(e instanceof Failure && e.status === 404)) throw e
}

export const deletion = {
  hides: (id: string) => hidden.has(id),
  /** begin hides the object with an id; remove deletes it. */
  begin(id: string, text: string, remove: () => Promise<unknown>) {
    hidden.add(id)
    const stop = () => {
      clearTimeout(timer)
      removeEventListener('pagehide', end)
    }
    const end = async () => {
      stop()
      if (!(await succeeds(() => remove().catch(unlessGone)))) hidden.delete(id)
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
