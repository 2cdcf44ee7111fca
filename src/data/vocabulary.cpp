namespace quatrain {}
