// On a phone the list of chats is a drawer over the page.

import { MediaQuery } from 'svelte/reactivity'

const wide = new MediaQuery('min-width: 48rem')
let open = $state(false)

export const drawer = {
  /** Whether it lies over the page, which cannot be used meanwhile. */
  get open() {
    return open && !wide.current
  },
  /** Whether there is no drawer, as the list has a place beside the page. */
  get beside() {
    return wide.current
  },
  show: () => (open = true),
  hide: () => (open = false),
}
