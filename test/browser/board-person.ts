/** The actions of a person on the demo application in a browser, for the tests of this folder. */
import type { Page } from '../support/browser.ts'

export const password = 'long enough'

/** Fills in the form of the page and sends it. */
export async function send(page: Page, fields: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(fields)) {
    await page.evaluate(`document.querySelector('form.panel [name=${name}]').value = ''`)
    await page.type(`form.panel [name=${name}]`, text)
  }
  await page.follow('form.panel button')
}

/** Signs up, which leads to the board. */
export async function signUp(page: Page, url: string, name: string): Promise<void> {
  await page.open(`${url}/sign-up`)
  await send(page, { name, password, password2: password })
}

/** Presses the back button. Resolves when the page is shown, reloaded or from the browser's cache. */
export async function goBack(page: Page): Promise<void> {
  await page.evaluate(`{
    const button = document.createElement('button')
    button.id = 'back'
    button.style.cssText = 'position: fixed; left: 0; top: 0; z-index: 1' // What else moves on the page does not move it.
    button.onclick = () => history.back()
    document.querySelector('main').append(button)
  }`)
  await page.follow('#back')
}

/** The paragraphs with messages. */
export async function messages(page: Page): Promise<unknown> {
  return page.evaluate("[...document.querySelectorAll('.message')].map((element) => element.innerText)")
}

/** The address of the page. */
export async function path(page: Page): Promise<unknown> {
  return page.evaluate('location.pathname')
}
