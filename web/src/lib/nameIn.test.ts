import { describe, expect, it } from 'vitest'
import { nameIn } from './nameIn'

describe('nameIn', () => {
  it('reads the name that a fact gives the user', () => {
    expect(nameIn("User's name is Ada Quill")).toBe('Ada Quill')
    expect(nameIn('The user is called Jean-Luc.')).toBe('Jean-Luc')
    expect(nameIn('My name is Ana')).toBe('Ana')
    expect(nameIn('用户叫阿朗')).toBe('阿朗')
    expect(nameIn('用户的名字是小贝。')).toBe('小贝')
    expect(nameIn('我叫林晚')).toBe('林晚')
  })
  it('takes nothing else for a name', () => {
    expect(nameIn("User's sister is called Ada")).toBe('')
    expect(nameIn('The user is a teacher.')).toBe('')
    expect(nameIn('我叫他明天来，好吗')).toBe('')
    expect(nameIn('用户是老师')).toBe('')
    expect(nameIn('我叫他明天来')).toBe('')
  })
})
