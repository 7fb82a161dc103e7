/** Gives `content` to the reader as a file. */
export function saveAs(name: string, content: string, type = 'text/csv'): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
