import { count, counted } from '../counted.ts';

interface Sum {
  readonly rows: number;
  readonly rowCount: number;
  readonly columns: number;
  readonly columnCount: number;
}

export const parquet = {
  reading: 'Reading the columns…',
  sum: ({ rows, rowCount, columns, columnCount }: Sum) =>
    `${rows < rowCount ? `The first ${count(rows)} of ${counted(rowCount, 'row')}` : counted(rows, 'row')}, ` +
    `${columns < columnCount ? `${count(columns)} of ${counted(columnCount, 'column')}` : counted(columns, 'column')}.`,
  more: (columns: readonly string[]) => `Also: ${columns.join(', ')}`,
  reasons: {
    notParquet: 'This is not a Parquet file: the magic bytes at its end are missing.',
    encrypted: 'This Parquet file is encrypted. Download it to read it with its key.',
    damaged: 'This Parquet file is damaged and cannot be read.',
    metadataTooLarge: 'The schema is too large for a preview. Download the file to read it.',
    rowsTooLarge: 'The first rows are too large for a preview. Download the file to read it.',
    unknownCodec: 'The preview does not support the compression of the rows. Download the file to read it.',
    notLoaded: 'The preview could not be loaded. Reload the page, or download the file.',
    tooLong: 'Reading this file takes too long for a preview. Download the file to read it.',
  },
};
