/** Locales for dates and numbers, independent of the language of the texts. */
export const readerLocales = navigator.languages;
