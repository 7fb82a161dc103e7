/** The texts of pages that links open, loaded with them. */
import { links } from '../en/pages/links.ts';

export const linksText = links;
