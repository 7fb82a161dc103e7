interface SavedText {
  readonly name: string;
  readonly type: string;
  readonly content: string;
}

/** Gives a text to the reader as a file. */
export function saveText({ name, type, content }: SavedText): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 0);
}
