/** The texts of previews of Parquet files, loaded with them. */
import { parquet } from './en/storage/parquet.ts';

export const parquetText = parquet;
