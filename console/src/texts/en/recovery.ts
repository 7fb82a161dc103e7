/** Only for the command palette; the page has its own in `pages/recovery-page.ts`. */
export const recovery = {
  create: 'Create recovery point',
  taking: 'Creating recovery point…',
};
