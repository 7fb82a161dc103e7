/** The files of a drop, those in folders too, each with its path. */

export interface FoundFile {
  readonly file: File;
  /** `photos/2026/a.jpg` */
  readonly path: string;
}

/** Call during the event, because the browser clears the data afterwards. */
export function droppedFiles(transfer: DataTransfer): Promise<FoundFile[]> {
  const entries = [...transfer.items].flatMap((item) => item.webkitGetAsEntry() ?? []);
  if (entries.length === 0) return Promise.resolve(chosenFiles(transfer.files));
  return Promise.all(entries.map(filesOf)).then((lists) => lists.flat().sort(byPath));
}

const { compare } = new Intl.Collator('en', { numeric: true });
/** Browsers read folders in no order. */
const byPath = (one: FoundFile, other: FoundFile) => compare(one.path, other.path);

/** The files of an `<input type=file>`; for folder inputs, with their paths. */
export function chosenFiles(files: Iterable<File>): FoundFile[] {
  return [...files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
}

async function filesOf(entry: FileSystemEntry): Promise<FoundFile[]> {
  const path = entry.fullPath.replace(/^\/+/, '');
  // Chromium has no global classes for `instanceof`.
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) =>
      (entry as FileSystemFileEntry).file(resolve, reject),
    );
    return [{ file, path }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: FoundFile[] = [];
  for (;;) {
    // Browsers return at most a hundred at a time.
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (part.length === 0) return found;
    for (const list of await Promise.all(part.map(filesOf))) for (const one of list) found.push(one);
  }
}
