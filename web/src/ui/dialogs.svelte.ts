// The open dialogs, the topmost last. Everything outside of that one is inert, and hidden
// from screen readers.

let open = $state.raw<HTMLElement[]>([])

export const dialogs = {
  get top() {
    return open.at(-1)
  },
  /** add returns the function that takes the dialog away. */
  add(dialog: HTMLElement) {
    open = [...open, dialog]
    return () => {
      open = open.filter((d) => d !== dialog)
    }
  },
}
