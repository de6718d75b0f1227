// TestPageAccessible asks this of a view beyond the rules of axe-core. Each function
// returns what is wrong, as text.
window.access = (() => {
  navigator.clipboard.writeText = async () => {} // needs a permission

  const name = (e) => e.outerHTML.replace(/\s+/g, ' ').slice(0, 160)
  const shown = (e) => !e.closest('[inert], .hidden-text') && e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && e.getBoundingClientRect().width > 0
  // Under a modal dialog nothing else can be reached.
  const top = () => [...document.querySelectorAll('dialog[open]')].at(-1) ?? document
  const all = (selector) => [...top().querySelectorAll(selector), ...(top() === document ? [] : document.querySelectorAll('.notes button'))].filter(shown)
  const targets = 'a[href], button, input, select, textarea, summary, [role=button], [role=tab], [role=menuitem], [role=option], [role=switch]'

  /** rules are the findings of axe-core; only names some rules.
   *  What is the same in all views is looked at in one of them: the navigation with the
   *  list of chats, which is 'whole', and whether the style sheets lock the orientation,
   *  for which axe-core reads them all again. */
  async function rules(whole, only) {
    await settled()
    const { violations } = await axe.run(whole ? document : { exclude: ['aside'] }, {
      runOnly: only ? { type: 'rule', values: only } : ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'],
      resultTypes: ['violations'],
      preload: whole,
      iframes: false, // the page has none
    })
    return violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target} ${n.html.slice(0, 160)} (${[...n.any, ...n.all, ...n.none].map((c) => c.message).join('; ')})`))
  }

  /** settled waits for the end of what moves or fades. */
  async function settled() {
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
    const moving = document.getAnimations().filter((a) => a.effect.getComputedTiming().endTime !== Infinity)
    await Promise.all(moving.map((a) => a.finished.catch(() => {})))
  }

  /** wide are elements that reach beyond the screen, or make something scroll sideways
   *  that is not a row of tabs or tags, a table or code. */
  function wide() {
    const sideways = (e) => e.closest('nav, [role=tablist], .tags, pre, table, .table, .scroll')
    return [...document.querySelectorAll('body, body *')].filter((e) => shown(e) && !sideways(e)).flatMap((e) => {
      const { overflowX } = getComputedStyle(e)
      if (overflowX !== 'hidden' && overflowX !== 'clip' && e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline' && (overflowX !== 'visible' || e === document.body)) return [`scrolls sideways (${e.scrollWidth} in ${e.clientWidth}): ${name(e)}`]
      const r = e.getBoundingClientRect()
      return r.right > innerWidth + 1 && r.width <= innerWidth * 3 && !clipped(e) ? [`reaches to ${Math.round(r.right)}: ${name(e)}`] : []
    })
  }
  const clipped = (e) => {
    for (let p = e.parentElement; p; p = p.parentElement) if (p !== document.body && ['hidden', 'clip', 'auto', 'scroll'].includes(getComputedStyle(p).overflowX) && p.getBoundingClientRect().right <= innerWidth + 1) return true
    return false
  }

  /** small are targets that a finger misses. A link in a sentence is as high as its line, and
   *  so is the mark of a source. */
  const small = () =>
    all(targets).flatMap((e) => {
      if (e.matches('[type=file], [type=hidden]') || (e.matches('a, .cite') && inSentence(e))) return []
      const boxes = [e, ...(e.labels ?? [])].map((b) => b.getBoundingClientRect())
      return boxes.some((r) => r.width >= 43.5 && r.height >= 43.5) ? [] : [`${Math.round(boxes[0].width)} × ${Math.round(boxes[0].height)}: ${name(e)}`]
    })
  const inSentence = (a) => {
    if (getComputedStyle(a).display !== (a.matches('button') ? 'inline-block' : 'inline')) return false
    const block = a.parentElement.closest('p, li, dd, td, div, summary, blockquote')
    return block.innerText.trim().length > a.innerText.trim().length
  }

  /** unnamed are fields whose only name is a placeholder, or none. */
  const unnamed = () => all('input, select, textarea').filter((e) => !e.matches('[type=hidden], [type=file]') && !e.labels?.length && !e.ariaLabel && !e.getAttribute('aria-labelledby')).map(name)

  /** unseen are elements that look the same with and without the focus, or whose outline
   *  is cut off by what they are in. */
  const seen = new Set() // of their kinds, in all views
  function unseen() {
    const before = document.activeElement
    const look = (e) => JSON.stringify([e, e.parentElement].map((e) => ((s) => [s.outlineStyle, s.outlineWidth, s.boxShadow, s.backgroundColor, s.borderColor, s.textDecorationLine])(getComputedStyle(e))))
    const found = []
    for (const e of all(targets + ', [tabindex="0"]')) {
      const kind = e.tagName + e.type + e.className + (e.parentElement.className || e.parentElement.tagName)
      if (seen.has(kind) || e.disabled) continue
      seen.add(kind)
      e.blur()
      const without = look(e)
      e.focus({ focusVisible: true, preventScroll: true })
      if (document.activeElement === e && look(e) === without) found.push(name(e))
      else if (document.activeElement === e && cut(e)) found.push(`the outline is cut off: ${name(e)}`)
    }
    before instanceof HTMLElement && before !== document.body ? before.focus({ preventScroll: true }) : document.activeElement?.blur()
    return found
  }
  const cut = (e) => {
    const s = getComputedStyle(e)
    const out = parseFloat(s.outlineOffset) + parseFloat(s.outlineWidth)
    if (s.outlineStyle === 'none' || out <= 0) return false
    const r = e.getBoundingClientRect()
    for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(p)
      if (overflowX === 'visible' && overflowY === 'visible') continue
      const b = p.getBoundingClientRect()
      const sides = [r.left - out < b.left - 0.5, r.right + out > b.right + 0.5, r.top - out < b.top - 0.5, r.bottom + out > b.bottom + 0.5]
      // A part that is scrolled out of sight is not cut off.
      if (r.bottom < b.top || r.top > b.bottom || r.right < b.left || r.left > b.right) return false
      if ((sides[0] && sides[1]) || (sides[2] && sides[3])) return true
      if (getComputedStyle(p).position === 'fixed') return false
    }
    return false
  }

  return { rules, settled, wide, small, unnamed, unseen }
})()
