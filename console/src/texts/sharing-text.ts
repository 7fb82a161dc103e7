/** The texts of shared links, loaded with them. */
import { sharing } from './en/storage/sharing.ts';

export const sharingText = sharing;
