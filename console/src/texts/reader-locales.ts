/** For dates and numbers: as the reader is used to them, whatever the language of the words. */
export const readerLocales = navigator.languages;
