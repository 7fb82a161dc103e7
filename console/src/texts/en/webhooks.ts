/** Only for the shell; the page has its own in `pages/webhooks-page.ts`. */
export const webhooks = { title: 'Webhooks' };
