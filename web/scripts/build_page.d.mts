/** Build the page into `outDir`, which is emptied; where it is. See build_page.mjs. */
export function buildPage(options?: { dist?: string; outDir?: string; engine?: string | null }): Promise<string>;
