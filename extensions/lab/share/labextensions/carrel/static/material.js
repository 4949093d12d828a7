// Opens the material of a link, which its user has confirmed on the site's page.
import { documentsRestored, openDocument, openFolder, reloadDocuments, saveDocuments } from "./documents.js";
import { readAll } from "./site.js";

export const openMaterial = async ({ apputils }, site, app, documents, ticket) => {
  const { Notification } = apputils;
  const waiting = Notification.emit("Fetching the files of the link …", "in-progress", { autoClose: false });
  let opened;
  try {
    // Files are merged as they are on disk; restored documents are those of before.
    await documentsRestored(app, documents);
    await saveDocuments(app, documents);
    opened = await site.act("open-material", { ticket });
  } finally {
    Notification.dismiss(waiting);
  }
  await reloadDocuments(app, documents, opened.folder);
  for (const note of opened.notes) {
    Notification.warning(note, { autoClose: false, actions: readAll(apputils, "Files of the link", note) });
  }
  if (opened.file) await openDocument(app, opened.file);
  else await openFolder(app, site, opened.shown);
  Notification.info(`The files of the link are in ${opened.folder}.`, { autoClose: 10000 });
};
